-- purpose: the dispatches of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: dispatches_number
select kept.dispatch_id, kept.operation_id, kept.number, kept.authorisation, kept.authorised_by, kept.account, kept.worker,
  kept.begun_at, kept.send_by_at, kept.quiescent_at, kept.ended_at, kept.stage, kept.marks_ms, kept.bytes_sent,
  kept.bytes_received, kept.outcome, kept.cause, kept.http_status, kept.request_ids, kept.candidate_id,
  kept.remote_job_id, kept.reply, kept.displaced, kept.held, kept.charged, kept.unit, kept.basis, kept.settled_at
from coatcheck.dispatches as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.number
