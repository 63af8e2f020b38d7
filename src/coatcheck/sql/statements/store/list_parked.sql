-- purpose: one keyset page of the messages that are set aside, for the person who takes them up
-- guard: none: the operator's view
-- index: outbox_parked_idx, operations_pkey, deliveries_pkey, dispatches_pkey
with held as materialized (
  select message.operation_id, message.lane, message.provider, message.account, message.action, message.visible_at, message.lease_count,
    message.leased_by, message.leased_at, message.wait_reason, message.wait_since_at, message.wait_count, message.parked_at,
    message.park_reason, message.expected_revision, message.last_error, message.first_leased_at, message.last_leased_at
  from coatcheck.outbox as message
  where message.parked_at is not null
    and (message.operation_id, message.lane) > (%(after)s::uuid, %(after_lane)s::smallint)
    and (%(park_reason)s::text is null or message.park_reason = %(park_reason)s::text)
  order by message.operation_id, message.lane
  limit %(size)s::integer
)
select
-- include: message_columns
-- include: message_sources
order by held.operation_id, held.lane
