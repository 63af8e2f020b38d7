-- purpose: the messages of one operation, for the person who looks at it, with what keeps them back of what is due
-- guard: none: the caller has checked the tenant
-- index: outbox_pkey
with
-- include: account_waits
kept as materialized (
  select message.operation_id, message.lane, message.action, message.schema_version, message.provider, message.account,
    message.expected_revision, message.expected_remote_job_id, message.visible_at, message.lease_token, message.lease_count,
    message.leased_by, message.leased_at, message.wait_reason, message.wait_since_at, message.wait_count, message.parked_at,
    message.park_reason
  from coatcheck.outbox as message
  where message.operation_id = %(operation_id)s::uuid
)
select kept.operation_id, kept.lane, kept.action, kept.schema_version, kept.provider, kept.account, kept.expected_revision,
  kept.expected_remote_job_id, kept.visible_at, kept.lease_token, kept.lease_count, kept.leased_by, kept.leased_at,
  kept.wait_reason, kept.wait_since_at, kept.wait_count, kept.parked_at, kept.park_reason,
  case kept.action when 'dispatch' then waits.dispatch_wait when 'observe' then waits.look_wait end as account_wait
from kept
left join account_waits as waits on waits.provider = kept.provider and (kept.account is null or kept.account = waits.account)
order by kept.lane
