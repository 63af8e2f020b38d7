-- purpose: give messages back, visible again later; a run of one wait reason counts up from its beginning, without a reason it stays as it was
-- guard: lease token and holder
-- index: outbox_pkey
with input as (
  select *
  from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(lease_token)s::bigint[], %(delay_s)s::float8[],
      %(reason)s::text[], %(forgives)s::boolean[], %(error)s::text[])
    as i(operation_id, lane, lease_token, delay_s, reason, forgives, error)
),
mine as materialized (
  select held.operation_id, held.lane, input.delay_s, input.reason, input.forgives, input.error
  from coatcheck.outbox as held
  join input using (operation_id, lane)
  where held.lease_token = input.lease_token and held.leased_by = %(worker)s::text
  order by held.operation_id, held.lane
  for no key update of held
)
update coatcheck.outbox as held set
  visible_at = coatcheck.lease_now() + make_interval(secs => mine.delay_s),
  lease_count = case when mine.forgives then 0 else held.lease_count end,
  last_error = case when mine.forgives then null else coalesce(mine.error, held.last_error) end,
  leased_by = null,
  leased_at = null,
  wait_reason = coalesce(mine.reason, held.wait_reason),
  wait_since_at = case
    when mine.reason is null or held.wait_reason = mine.reason then held.wait_since_at
    else coatcheck.lease_now() end,
  wait_count = case
    when mine.reason is null then held.wait_count
    when held.wait_reason = mine.reason then held.wait_count + 1
    else 1 end
from mine
where held.operation_id = mine.operation_id and held.lane = mine.lane
returning held.operation_id, held.lane
