-- purpose: one keyset page of the messages that fit, for the person who looks for what waits
-- guard: none: the operator's view
-- index: outbox_pkey, operations_pkey
with
-- include: account_waits
held as materialized (
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
  ,
  -- what is due and not leased by anybody, though workers may be there
  case
    when held.parked_at is not null or held.visible_at > coatcheck.due_now() then null
    when held.action = 'dispatch' then waits.dispatch_wait
    when held.action = 'observe' or (held.action = 'reconcile' and held.wait_reason = 'lookup')
      -- a search asks about no job that would have a floor
      then coalesce(waits.look_wait, case
        when held.action = 'observe' and held.last_leased_at > coatcheck.due_now() - make_interval(secs => waits.look_floor_s)
          then 'floor' end) end as account_wait
-- include: message_sources
left join account_waits as waits on waits.provider = held.provider and (held.account is null or held.account = waits.account)
order by held.operation_id, held.lane
