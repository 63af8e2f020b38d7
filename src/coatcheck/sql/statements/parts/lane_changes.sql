-- purpose: the lane instructions of a batch, as rows
-- guard: none of its own; `lanes` applies them to written operations only
-- index: none
lane_changes as (
  select *
  from unnest(%(lane_operation_id)s::uuid[], %(lane)s::smallint[], %(lane_verb)s::text[], %(lane_action)s::text[],
      %(lane_delay_s)s::float8[], %(lane_reason)s::text[])
    as change(operation_id, lane, verb, action, delay_s, reason)
),
