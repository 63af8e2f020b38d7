-- purpose: the orphans of one operation, for the person who looks for its job
-- guard: none: the operator's view
-- index: remote_jobs_orphans_idx, operations_pkey, dispatches_pkey
select
-- include: orphan_columns
from coatcheck.remote_jobs as job
left join coatcheck.operations as operation on operation.operation_id = job.operation_id
left join coatcheck.dispatches as dispatch on dispatch.dispatch_id = job.dispatch_id
where job.role = 'orphan' and job.operation_id = %(operation_id)s::uuid
order by job.account, job.remote_job_id
