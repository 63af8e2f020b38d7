-- purpose: set messages aside for a person
-- guard: lease token and holder
-- index: outbox_pkey
with input as (
  select *
  from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(lease_token)s::bigint[], %(reason)s::text[])
    as i(operation_id, lane, lease_token, reason)
),
mine as materialized (
  select held.operation_id, held.lane, input.reason
  from coatcheck.outbox as held
  join input using (operation_id, lane)
  where held.lease_token = input.lease_token and held.leased_by = %(worker)s::text
  order by held.operation_id, held.lane
  for no key update of held
)
update coatcheck.outbox as held set
  parked_at = coatcheck.lease_now(),
  park_reason = mine.reason,
  -- the lease that only sets it aside is none of those that ended badly
  lease_count = case mine.reason when 'lease_count' then held.lease_count - 1 else held.lease_count end,
  leased_by = null,
  leased_at = null
from mine
where held.operation_id = mine.operation_id and held.lane = mine.lane
returning held.operation_id, held.lane
