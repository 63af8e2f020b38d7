-- purpose: one keyset page of the messages that fit, for the person who looks for what waits
-- guard: none: the operator's view
-- index: outbox_pkey, operations_pkey
select
-- include: message_columns
-- include: message_sources
where (held.operation_id, held.lane) > (%(after)s::uuid, %(after_lane)s::smallint)
  and (%(action)s::text is null or held.action = %(action)s::text)
  and (%(provider)s::text is null or held.provider = %(provider)s::text)
  and (%(wait_reason)s::text is null or held.wait_reason = %(wait_reason)s::text)
order by held.operation_id, held.lane
limit %(size)s::integer
