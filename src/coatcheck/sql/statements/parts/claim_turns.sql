-- purpose: what is due in turns of tenants: a walk around their ring from where the last claim stopped, an equal share for each that is met with something due
-- guard: none of its own; rows that another claim has are passed by
-- index: outbox_turn_idx
-- each step goes to the next tenant and precedence, due or not; a walk that gets no further than 32 of them goes on with the next claim
ring as (
  select allowed.kind, start.leg, 0 as hop, start.tenant_id, start.precedence, false as is_due, 0 as found_count
  from allowed
  cross join lateral (
    values (1, allowed.after_tenant, 32767::smallint), (2, '', (-32768)::smallint)) as start(leg, tenant_id, precedence)
  where allowed.free > 0 and not exists (select from suspect)
  union all
  select ring.kind, ring.leg, ring.hop + 1, step.tenant_id, step.precedence, step.is_due, ring.found_count + step.is_due::integer
  from ring
  join allowed using (kind)
  cross join lateral (
    select held.tenant_id, held.precedence, held.visible_at <= coatcheck.due_now() as is_due
    from coatcheck.outbox as held
    where held.provider = allowed.provider and held.action = allowed.action and held.action <> 'reconcile' and held.parked_at is null
      and (held.tenant_id, held.precedence) > (ring.tenant_id, ring.precedence)
    order by held.tenant_id, held.precedence, held.visible_at
    limit 1) as step
  where ring.hop < 32 and ring.found_count < allowed.free and (ring.leg = 1 or step.tenant_id <= allowed.after_tenant)
),
-- whose walk got no further begins the next one there; what it would meet after a whole round is not asked for before
unfinished as materialized (
  select kind, tenant_id from ring where leg = 1 and hop = 32
),
met as materialized (
  select kind, tenant_id, precedence, turn
  from (
    select ring.kind, ring.tenant_id, ring.precedence, row_number() over (partition by ring.kind order by ring.leg, ring.hop) as turn
    from ring
    where ring.is_due and (ring.leg = 1 or not exists (select from unfinished where unfinished.kind = ring.kind))) as numbered
  join allowed using (kind)
  where numbered.turn <= allowed.free
),
shares as (
  select met.kind, ceil(allowed.free::float8 / count(distinct met.tenant_id))::integer as share
  from met
  join allowed using (kind)
  group by met.kind, allowed.free
),
turn_rows as materialized (
  select met.kind, met.tenant_id, met.precedence, met.turn, found.operation_id, found.lane, found.visible_at
  from met
  join shares using (kind)
  join allowed using (kind)
  cross join lateral (
    select held.operation_id, held.lane, held.visible_at
    from coatcheck.outbox as held
    where held.provider = allowed.provider and held.action = allowed.action and held.action <> 'reconcile'
      and held.tenant_id = met.tenant_id and held.precedence = met.precedence
      and held.parked_at is null and held.visible_at <= coatcheck.due_now()
      and (held.leased_by is null or held.lease_count < 2)
      and (held.account is null or held.account = allowed.account)
      and (held.last_leased_at <= coatcheck.due_now() - make_interval(secs => allowed.floor_s)) is not false
      and held.schema_version = any(%(schema_version)s::smallint[])
    order by held.visible_at
    limit shares.share
    for no key update skip locked
  ) as found
),
turns as (
  select *, row_number() over (partition by kind, tenant_id order by precedence, visible_at) as rank
  from turn_rows
),
