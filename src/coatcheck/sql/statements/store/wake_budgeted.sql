-- purpose: make due what waits for the budget that was just changed, of every provider of its account, and tell the workers
-- guard: only rows that nobody leases; the account's row was changed before, so that accounts are locked before lanes, as everywhere
-- index: outbox_due_idx
with waiting as materialized (
  select held.operation_id, held.lane
  from coatcheck.outbox as held
  where held.provider in (
      select same.name
      from coatcheck.providers as same
      where same.account = (select known.account from coatcheck.providers as known where known.name = %(name)s::text))
    and held.action = 'dispatch' and held.parked_at is null and held.wait_reason in ('cap', 'rate') and held.leased_by is null
  order by held.operation_id, held.lane
  for no key update
),
due as (
  update coatcheck.outbox as held set visible_at = coatcheck.lease_now(), wait_reason = null, wait_since_at = null, wait_count = 0
  from waiting
  where held.operation_id = waiting.operation_id and held.lane = waiting.lane
)
select pg_notify('coatcheck', '')
