-- purpose: one operation with all that a decision about it rests on: its dispatch, its course, the last entries of its history
-- guard: the tenant, where one asks; reading decides nothing, what is decided names the revision
-- index: operations_pkey, dispatches_pkey, outbox_pkey, history_pkey, providers_pkey, specifications_pkey
select
-- include: operation_columns
  ,
-- include: doubt_columns
  , coalesce(operation.estimate, provider.default_estimate) as next_estimate,
  newest.event as newest_event, newest.actor as newest_actor, newest.at as newest_at,
  departure.event as departure_event, departure.actor as departure_actor, departure.at as departure_at,
  asked.operation_id is null as is_retired
from coatcheck.operations as operation
left join coatcheck.dispatches as dispatch on dispatch.dispatch_id = operation.dispatch_id
left join coatcheck.outbox as course on course.operation_id = operation.operation_id and course.lane = 0
left join coatcheck.specifications as asked on asked.operation_id = operation.operation_id
left join coatcheck.providers as provider on provider.name = operation.provider and provider.unit = operation.unit
left join coatcheck.history as newest on newest.operation_id = operation.operation_id and newest.revision = operation.revision
-- how it left a state in which a person had something to decide, if that is the last time that its phase changed
left join lateral (
  select told.event, told.actor, told.at
  from (
    select entry.event, entry.actor, entry.at, entry.from_phase, entry.to_phase
    from coatcheck.history as entry
    where entry.operation_id = operation.operation_id and entry.from_phase <> entry.to_phase
    order by entry.revision desc
    limit 1) as told
  where told.from_phase in ('uncertain', 'rejected') or told.to_phase = 'abandoned') as departure on true
where operation.operation_id = %(operation_id)s::uuid
  and (%(tenant_id)s::text is null or operation.tenant_id = %(tenant_id)s::text)
