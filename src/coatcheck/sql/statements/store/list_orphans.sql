-- purpose: one keyset page of paid jobs that no operation could take, the oldest operation's first
-- guard: none: the operator's view
-- index: remote_jobs_orphans_idx, operations_pkey, dispatches_pkey
select
-- include: orphan_columns
from coatcheck.remote_jobs as job
left join coatcheck.operations as operation on operation.operation_id = job.operation_id
left join coatcheck.dispatches as dispatch on dispatch.dispatch_id = job.dispatch_id
where job.role = 'orphan' and job.operation_id >= %(after)s::uuid
  and (job.operation_id, job.account, job.remote_job_id) > (%(after)s::uuid, %(after_account)s::text, %(after_job)s::text)
  and (%(with_resolved)s::boolean or job.resolved_at is null)
order by job.operation_id, job.account, job.remote_job_id
limit %(size)s::integer
