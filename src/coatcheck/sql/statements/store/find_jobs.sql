-- purpose: to whom remote jobs belong, as far as they are recorded
-- guard: none: reading decides nothing, who adopts claims the id in its own statement
-- index: remote_jobs_pkey
select job.account, job.remote_job_id, job.operation_id, job.dispatch_id, job.role,
  job.resolved_at, job.resolved_by, job.resolution
from unnest(%(account)s::text[], %(remote_job_id)s::text[]) as asked(account, remote_job_id)
join coatcheck.remote_jobs as job using (account, remote_job_id)
