-- purpose: a message whose leases keep ending without a word: it may take its worker with it, and what else that has in hand, so it is leased alone
-- guard: none of its own
-- index: outbox_suspect_idx
suspect as materialized (
  select found.operation_id, found.lane, allowed.account, allowed.action, allowed.lease_s
  from allowed
  cross join lateral (
    select held.operation_id, held.lane
    from coatcheck.outbox as held
    where held.provider = allowed.provider and held.action = allowed.action and held.action <> 'reconcile'
      and held.parked_at is null and held.leased_by is not null and held.lease_count >= 2
      and held.visible_at <= coatcheck.due_now()
      and (held.account is null or held.account = allowed.account)
      and held.schema_version = any(%(schema_version)s::smallint[])
    order by held.visible_at
    limit 1
    for no key update skip locked
  ) as found
  where %(is_free)s::boolean and coalesce(allowed.leave_count > 0, true)
  limit 1
),
