-- purpose: one keyset page of the messages that are set aside, for the person who takes them up
-- guard: none: the operator's view
-- index: outbox_parked_idx, operations_pkey, deliveries_pkey, dispatches_pkey
select
-- include: message_columns
-- include: message_sources
where held.parked_at is not null
  and (held.operation_id, held.lane) > (%(after)s::uuid, %(after_lane)s::smallint)
  and (%(park_reason)s::text is null or held.park_reason = %(park_reason)s::text)
order by held.operation_id, held.lane
limit %(size)s::integer
