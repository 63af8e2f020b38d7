-- purpose: the lane instructions of a batch, as rows
-- guard: none of its own; `lanes` applies them to written operations only
-- index: none
-- what a verb does is a boolean, of which PostgreSQL expects half: of two words it expects one row, and would compare each with each
lane_changes as materialized (
  select change.operation_id, change.lane, change.verb, change.action, change.delay_s, change.reason,
    change.verb in ('drop', 'drop_all') as drops, change.verb in ('aim', 'park') as aims,
    change.verb in ('look', 'look_again') as looks
  from unnest(%(lane_operation_id)s::uuid[], %(lane)s::smallint[], %(lane_verb)s::text[], %(lane_action)s::text[],
      %(lane_delay_s)s::float8[], %(lane_reason)s::text[])
    as change(operation_id, lane, verb, action, delay_s, reason)
),
