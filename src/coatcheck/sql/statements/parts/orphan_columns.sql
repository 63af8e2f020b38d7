-- purpose: an orphan's row as the value `Orphan` has it; where its dispatch is accounted by another job, its cost can only be assumed
-- guard: none: reading decides nothing
-- index: none
  job.account, job.remote_job_id, job.operation_id, operation.tenant_id, operation.phase, dispatch.number,
  case when dispatch.remote_job_id = job.remote_job_id then coalesce(dispatch.charged - dispatch.orphaned, dispatch.held) else dispatch.held end as cost,
  dispatch.unit, case when dispatch.remote_job_id = job.remote_job_id then coalesce(dispatch.basis, 'assumed')
    when dispatch.held is not null then 'assumed' end as basis,
  job.seen_at, job.resolved_at, job.resolved_by, job.resolution
