-- purpose: one message by its address, for the person who takes it up
-- guard: none: reading decides nothing, what follows names the operation's revision
-- index: outbox_pkey, operations_pkey
with held as materialized (
  select message.operation_id, message.lane, message.provider, message.account, message.action, message.visible_at, message.lease_count,
    message.leased_by, message.leased_at, message.wait_reason, message.wait_since_at, message.wait_count, message.parked_at,
    message.park_reason, message.expected_revision, message.last_error, message.first_leased_at, message.last_leased_at
  from coatcheck.outbox as message
  where message.operation_id = %(operation_id)s::uuid and message.lane = %(lane)s::smallint
)
select
-- include: message_columns
-- include: message_sources
