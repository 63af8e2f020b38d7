-- purpose: dispatches whose deadline passed while their account has no leave for any: ending them asks the service nothing
-- guard: none of its own; what the operation itself says of its deadline is asked by whoever handles it
-- index: outbox_deadline_idx
expired as materialized (
  select found.operation_id, found.lane, allowed.account, allowed.action, allowed.lease_s
  from allowed
  cross join lateral (
    select held.operation_id, held.lane
    from coatcheck.outbox as held
    where held.provider = allowed.provider and held.action = 'dispatch' and held.parked_at is null
      and held.dispatch_by_at <= coatcheck.due_now() and held.visible_at <= coatcheck.due_now()
      and (held.leased_by is null or held.lease_count < 2)
      and (held.account is null or held.account = allowed.account)
      and held.schema_version = any(%(schema_version)s::smallint[])
    order by held.dispatch_by_at
    limit least(allowed.room, 16)
    for no key update skip locked
  ) as found
  where allowed.action = 'dispatch' and allowed.leave_count = 0 and not exists (select from suspect)
),
