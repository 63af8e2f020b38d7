-- purpose: other tenants' dispatches of an account that may have made a job in a window, and of which nobody knows what they made
-- guard: none: the operator is shown them
-- index: dispatches_doubt_idx, operations_pkey
select operation.operation_id, operation.tenant_id, operation.phase, dispatch.begun_at, dispatch.quiescent_at, dispatch.candidate_id
from coatcheck.dispatches as dispatch
join coatcheck.operations as operation using (operation_id)
-- whatever became of the operation: neither a write-off nor a redispatch says that there is no job
where dispatch.outcome in ('open', 'uncertain') and dispatch.remote_job_id is null
  and dispatch.account = %(account)s::text
  and dispatch.begun_at <= %(until)s::timestamptz and dispatch.quiescent_at >= %(since)s::timestamptz
  and operation.tenant_id <> %(tenant_id)s::text
order by operation.operation_id, dispatch.number
