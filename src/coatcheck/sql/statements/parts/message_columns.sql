-- purpose: a message's row as the value `Kept` has it; what a delivery or a doubt waits for has its cause elsewhere
-- guard: none: reading decides nothing
-- index: none
  held.operation_id, operation.tenant_id, held.provider, held.account, held.action, operation.phase, held.lane, held.visible_at,
  held.lease_count, held.leased_by, held.leased_at, held.wait_reason, held.wait_since_at, held.wait_count, held.parked_at,
  held.park_reason, held.expected_revision, coalesce(held.last_error, delivery.cause, dispatch.cause) as last_error,
  held.first_leased_at, held.last_leased_at
