-- purpose: let a provider's account dispatch again, and make due what waited for that
-- guard: only rows that wait for the pause and that nobody leases
-- index: providers_pkey, outbox_due_idx
with affected as materialized (
  select held.name
  from coatcheck.providers as held
  where held.account = (select known.account from coatcheck.providers as known where known.name = %(name)s)
  order by held.name
  for no key update
),
waiting as materialized (
  select held.operation_id, held.lane
  from coatcheck.outbox as held
  where held.provider in (select name from affected) and held.action = 'dispatch' and held.parked_at is null
    and held.wait_reason = 'pause' and held.leased_by is null
  order by held.operation_id, held.lane
  for no key update
),
due as (
  update coatcheck.outbox as held set visible_at = coatcheck.lease_now(), wait_reason = null, wait_since_at = null, wait_count = 0
  from waiting
  where held.operation_id = waiting.operation_id and held.lane = waiting.lane
)
update coatcheck.providers as provider set
  dispatch_paused_at = null,
  dispatch_pause_reason = null,
  dispatch_paused_by = null,
  dispatch_resumed_at = coatcheck.lease_now(),
  dispatch_resume_reason = %(reason)s,
  dispatch_resumed_by = %(actor)s,
  forbidden_count = 0,
  doubt_count = 0
from affected
where provider.name = affected.name
