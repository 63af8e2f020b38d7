-- purpose: an operation's row as the value `Operation` has it
-- guard: none: reading decides nothing
-- index: none
  operation.operation_id, operation.tenant_id, operation.operation_key, operation.provider, operation.account,
  operation.specification_hash, operation.phase, operation.authorisation, operation.authorised_by, operation.dispatch_id,
  operation.dispatch_count, operation.render_state, operation.remote_status, operation.delivery_state, operation.output_count,
  operation.delivered_count, operation.failed_count, operation.remote_job_id, operation.revision, operation.estimate, operation.unit,
  operation.priority, operation.not_before_at, operation.dispatch_by_at, operation.observe_by_at, operation.cancel_requested_at,
  operation.cancel_answer, operation.accepted_at, operation.final_at, operation.created_at, operation.updated_at, coatcheck.due_now() as read_at
