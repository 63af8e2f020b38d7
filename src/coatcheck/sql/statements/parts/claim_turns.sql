-- purpose: what is due in turns of tenants: a walk around their ring from where the last claim stopped, an equal share for each that is met with something due
-- guard: none of its own; rows that another claim has are passed by
-- index: outbox_turn_idx
-- each step goes to the next tenant and precedence, due or not, and once over the end of the ring to its beginning; a walk ends after a round,
-- when it met a tenant for each place, or after 33 steps, 500 in a backlog: the next claim goes on there; what is kept for tenants with nothing
-- in hand is theirs
ring as (
  select allowed.kind, 0 as hop, false as is_second_leg, allowed.after_tenant as tenant_id, allowed.after_precedence as precedence,
    false as is_met, false as is_skipped, null::text as met_tenant, 0 as fresh_count, 0 as other_count
  from allowed
  where allowed.free > 0 and not exists (select from suspect)
  union all
  select ring.kind, ring.hop + 1, ring.is_second_leg or step.tenant_id is null, coalesce(step.tenant_id, ''),
    coalesce(step.precedence, (-32768)::smallint), verdict.is_met, seen.is_due and not verdict.is_met,
    case when verdict.is_met then step.tenant_id else ring.met_tenant end,
    ring.fresh_count + (verdict.is_met and seen.is_new and seen.is_fresh)::integer,
    ring.other_count + (verdict.is_met and seen.is_new and not seen.is_fresh)::integer
  from ring
  join allowed using (kind)
  left join lateral (
    select next.tenant_id, next.precedence, next.visible_at <= coatcheck.due_now() as is_due
    from (
      select held.provider, held.action, held.tenant_id, held.precedence, held.visible_at
      from coatcheck.outbox as held
      where held.action <> 'reconcile' and held.parked_at is null
        -- as one comparison: two that are equal seem to leave so few that a planner without statistics sorts a whole backlog at each step
        and (held.provider, held.action, held.tenant_id, held.precedence)
          > (allowed.provider, allowed.action, ring.tenant_id, ring.precedence)
      order by held.provider, held.action, held.tenant_id, held.precedence, held.visible_at
      limit 1) as next
    where next.provider = allowed.provider and next.action = allowed.action) as step
    on not ring.is_second_leg or (step.tenant_id, step.precedence) <= (allowed.after_tenant, allowed.after_precedence)
  cross join lateral (select coalesce(step.is_due, false) as is_due, step.tenant_id is distinct from ring.met_tenant as is_new,
    (allowed.action, step.tenant_id) not in (select action, tenant_id from served) as is_fresh) as seen
  cross join lateral (select seen.is_due and (not seen.is_new or seen.is_fresh
    or ring.other_count < least(allowed.free, allowed.room - allowed.reserve)) as is_met) as verdict
  where ring.hop < allowed.hop_limit and ring.fresh_count + ring.other_count < allowed.free and (step.tenant_id is not null or not ring.is_second_leg)
),
met as materialized (
  select kind, tenant_id, precedence, hop as turn, fresh_count + other_count as tenant_number
  from ring
  where is_met
),
shares as (
  select met.kind, ceil(allowed.free::float8 / max(met.tenant_number))::integer as share
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
