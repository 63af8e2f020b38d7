-- purpose: make due what waits for a tenant's allowance in a unit, the oldest operation first, and tell the workers
-- guard: only rows that nobody leases: the mark of one that is leased asks for the limit when this is committed
-- index: none for the outbox, which holds only what is unfinished; operations_pkey
with waiting as materialized (
  select held.operation_id, held.lane
  from coatcheck.outbox as held
  join coatcheck.operations as operation using (operation_id)
  where held.parked_at is null and held.leased_by is null and held.action = 'dispatch' and held.wait_reason = 'allowance'
    and operation.tenant_id = %(tenant_id)s::text and operation.unit = %(unit)s::text
  order by held.operation_id, held.lane
  for no key update of held
),
turns as (
  select waiting.operation_id, waiting.lane, clock.at + row_number() over (order by waiting.operation_id) * interval '1 us' as due_at
  from waiting
  cross join (select coatcheck.lease_now() as at) as clock
),
due as (
  update coatcheck.outbox as held set visible_at = turns.due_at, wait_reason = null, wait_since_at = null, wait_count = 0
  from turns
  where held.operation_id = turns.operation_id and held.lane = turns.lane
)
select pg_notify('coatcheck', '')
