-- purpose: make what waits for an allowance or a pause due once more
-- guard: only rows that nobody leases
-- index: none: asked once, when nothing else is left
with waiting as materialized (
  select held.operation_id, held.lane
  from coatcheck.outbox as held
  where held.parked_at is null and held.leased_by is null and held.wait_reason in ('allowance', 'pause')
    and held.provider = any(%(provider)s::text[])
  order by held.operation_id, held.lane
  for no key update
)
update coatcheck.outbox as held set visible_at = coatcheck.lease_now()
from waiting
where held.operation_id = waiting.operation_id and held.lane = waiting.lane
