-- purpose: one keyset page of what waits for a person's decision, oldest first, with the dispatch that it is about
-- guard: none: the operator's view, under a tenant where one is named
-- index: outbox_doubt_idx, outbox_parked_idx, operations_pkey, dispatches_pkey
with parked as (
  select found.operation_id, found.park_reason
  from unnest(%(park_reason)s::text[]) as wanted(park_reason)
  cross join lateral (
    select held.operation_id, held.park_reason
    from coatcheck.outbox as held
    join coatcheck.operations as standing using (operation_id)
    where held.parked_at is not null and held.park_reason = wanted.park_reason and held.lane = 0
      and held.operation_id > %(after)s::uuid
      and (standing.phase = 'uncertain' or (held.park_reason in ('missing', 'stalled')
        and standing.phase in ('accepted', 'submission_failed') and standing.final_at is null))
      and (%(tenant_id)s::text is null or standing.tenant_id = %(tenant_id)s::text)
    order by held.operation_id
    limit %(size)s::integer) as found
),
-- doubts that a worker looks up, among the dispatches that are under way
looked_up as (
  select held.operation_id, held.park_reason
  from coatcheck.outbox as held
  join coatcheck.operations as standing using (operation_id)
  where held.action = 'reconcile' and held.parked_at is null and held.operation_id > %(after)s::uuid
    and standing.phase = 'uncertain' and (%(tenant_id)s::text is null or standing.tenant_id = %(tenant_id)s::text)
),
course as (
  select operation_id, park_reason from parked
  union all select operation_id, park_reason from looked_up
  order by operation_id
  limit %(size)s::integer
)
select
-- include: operation_columns
  ,
-- include: doubt_columns
from course
join coatcheck.operations as operation using (operation_id)
left join coatcheck.dispatches as dispatch on dispatch.dispatch_id = operation.dispatch_id
order by operation.operation_id
