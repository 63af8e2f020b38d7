-- purpose: other tenants' dispatches of an account that may have made a job in a window, and of which nobody knows what they made
-- guard: none: the operator is shown them
-- index: dispatches_doubt_idx, outbox_doubt_idx, operations_pkey, dispatches_pkey
with unknown as (
  -- whatever became of the operation: neither a write-off nor a redispatch says that there is no job
  select doubted.operation_id, doubted.number, doubted.begun_at, doubted.quiescent_at, doubted.candidate_id
  from coatcheck.dispatches as doubted
  where doubted.is_doubted and doubted.remote_job_id is null and doubted.account = %(account)s::text
    and doubted.begun_at <= %(until)s::timestamptz and doubted.quiescent_at >= %(since)s::timestamptz
  union all
  -- one under way is its operation's last, and its lane leads to doubt
  select sent.operation_id, sent.number, sent.begun_at, sent.quiescent_at, sent.candidate_id
  from coatcheck.outbox as held
  join coatcheck.operations as standing using (operation_id)
  join coatcheck.dispatches as sent using (dispatch_id)
  where held.action = 'reconcile' and held.parked_at is null and standing.phase = 'dispatching'
    and sent.outcome = 'open' and sent.remote_job_id is null and sent.account = %(account)s::text
    and sent.begun_at <= %(until)s::timestamptz and sent.quiescent_at >= %(since)s::timestamptz
)
select operation.operation_id, operation.tenant_id, operation.phase, unknown.begun_at, unknown.quiescent_at, unknown.candidate_id
from unknown
join coatcheck.operations as operation using (operation_id)
where operation.tenant_id <> %(tenant_id)s::text
order by operation.operation_id, unknown.number
