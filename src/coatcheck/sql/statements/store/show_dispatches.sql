-- purpose: the dispatches of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: dispatches_number, remote_jobs_pkey
select kept.dispatch_id, kept.operation_id, kept.number, kept.authorisation, kept.authorised_by, kept.account, kept.worker,
  kept.begun_at, kept.send_by_at, kept.quiescent_at, kept.ended_at, kept.stage, kept.marks_ms, kept.bytes_sent,
  kept.bytes_received, kept.outcome, kept.cause, kept.http_status, kept.request_ids, kept.candidate_id,
  kept.remote_job_id, kept.reply, kept.displaced, kept.held, kept.charged, kept.orphaned, kept.unit, kept.basis,
  kept.settled_at, job.operation_id as job_operation_id, job.resolved_at as job_resolved_at, job.resolved_by as job_resolved_by,
  job.resolution as job_resolution
from coatcheck.dispatches as kept
left join coatcheck.remote_jobs as job on job.account = kept.account and job.remote_job_id = kept.remote_job_id
where kept.operation_id = %(operation_id)s::uuid
order by kept.number
