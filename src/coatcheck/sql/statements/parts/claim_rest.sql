-- purpose: what is due besides, the longest first: where a walk did not meet enough, and messages from before there were turns
-- guard: none of its own
-- index: outbox_due_idx
rest as materialized (
  select allowed.kind, found.operation_id, found.lane, found.visible_at
  from allowed
  cross join lateral (
    select held.operation_id, held.lane, held.visible_at
    from coatcheck.outbox as held
    where held.provider = allowed.provider and held.action = allowed.action and held.action <> 'reconcile'
      and held.parked_at is null and held.visible_at <= coatcheck.due_now()
      and (held.leased_by is null or held.lease_count < 2)
      and (held.account is null or held.account = allowed.account)
      and (held.last_leased_at <= coatcheck.due_now() - make_interval(secs => allowed.floor_s)) is not false
      and held.schema_version = any(%(schema_version)s::smallint[])
      -- not an anti-join, for which the planner may read the whole table when most of it is due
      and (held.operation_id, held.lane) not in (select operation_id, lane from turn_rows)
    order by held.visible_at
    -- places that are kept for tenants with nothing in hand are not for the rest
    limit case when (select count(*) from turn_rows where turn_rows.kind = allowed.kind) < allowed.free
      then greatest(0, least(allowed.free, allowed.room - allowed.reserve)) else 0 end
    for no key update skip locked
  ) as found
  where not exists (select from suspect)
),
