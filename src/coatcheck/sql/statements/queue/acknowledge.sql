-- purpose: delete messages whose lane has nothing left to do
-- guard: lease token and holder
-- index: outbox_pkey
with input as (
  select *
  from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(lease_token)s::bigint[]) as i(operation_id, lane, lease_token)
),
mine as materialized (
  select held.operation_id, held.lane
  from coatcheck.outbox as held
  join input using (operation_id, lane)
  where held.lease_token = input.lease_token and held.leased_by = %(worker)s::text
  order by held.operation_id, held.lane
  for no key update of held
)
delete from coatcheck.outbox as held
using mine
where held.operation_id = mine.operation_id and held.lane = mine.lane
returning held.operation_id, held.lane
