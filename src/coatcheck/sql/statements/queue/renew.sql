-- purpose: keep leases that an action legitimately outlasts
-- guard: lease token and holder
-- index: outbox_pkey
with input as (
  select *
  from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(lease_token)s::bigint[], %(lease_s)s::float8[])
    as i(operation_id, lane, lease_token, lease_s)
),
mine as materialized (
  select held.operation_id, held.lane, input.lease_s
  from coatcheck.outbox as held
  join input using (operation_id, lane)
  where held.lease_token = input.lease_token and held.leased_by = %(worker)s::text
  order by held.operation_id, held.lane
  for no key update of held
)
update coatcheck.outbox as held set visible_at = coatcheck.lease_now() + make_interval(secs => mine.lease_s)
from mine
where held.operation_id = mine.operation_id and held.lane = mine.lane
returning held.operation_id, held.lane
