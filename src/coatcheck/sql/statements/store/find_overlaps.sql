-- purpose: other tenants' dispatches of an account that may have made a job in a window: those under way and those in doubt
-- guard: none: the operator is shown them
-- index: outbox_doubt_idx, outbox_parked_idx, operations_pkey, dispatches_pkey
with open_courses as (
  select held.operation_id
  from coatcheck.outbox as held
  where held.action = 'reconcile' and held.parked_at is null
  union all
  select held.operation_id
  from coatcheck.outbox as held
  where held.parked_at is not null and held.park_reason = any(%(park_reason)s::text[]) and held.lane = 0
)
select operation.operation_id, operation.tenant_id, operation.phase, dispatch.begun_at, dispatch.quiescent_at
from open_courses
join coatcheck.operations as operation using (operation_id)
join coatcheck.dispatches as dispatch on dispatch.dispatch_id = operation.dispatch_id
where operation.phase in ('dispatching', 'uncertain') and operation.tenant_id <> %(tenant_id)s::text
  and dispatch.account = %(account)s::text
  and dispatch.begun_at <= %(until)s::timestamptz and dispatch.quiescent_at >= %(since)s::timestamptz
order by operation.operation_id
