-- purpose: one keyset page of the messages that fit, for the person who looks for what waits
-- guard: none: the operator's view
-- index: outbox_pkey, operations_pkey
with held as materialized (
  select message.operation_id, message.lane, message.provider, message.account, message.action, message.visible_at, message.lease_count,
    message.leased_by, message.leased_at, message.wait_reason, message.wait_since_at, message.wait_count, message.parked_at,
    message.park_reason, message.expected_revision, message.last_error, message.first_leased_at, message.last_leased_at
  from coatcheck.outbox as message
  where (message.operation_id, message.lane) > (%(after)s::uuid, %(after_lane)s::smallint)
    and (%(action)s::text is null or message.action = %(action)s::text)
    and (%(provider)s::text is null or message.provider = %(provider)s::text)
    and (%(wait_reason)s::text is null or message.wait_reason = %(wait_reason)s::text)
  order by message.operation_id, message.lane
  limit %(size)s::integer
)
select
-- include: message_columns
-- include: message_sources
order by held.operation_id, held.lane
