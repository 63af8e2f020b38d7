-- purpose: the messages of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: outbox_pkey
select kept.operation_id, kept.lane, kept.action, kept.schema_version, kept.provider, kept.account, kept.expected_revision,
  kept.expected_remote_job_id, kept.visible_at, kept.lease_token, kept.lease_count, kept.leased_by, kept.leased_at,
  kept.wait_reason, kept.wait_since_at, kept.wait_count, kept.parked_at, kept.park_reason
from coatcheck.outbox as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.lane
