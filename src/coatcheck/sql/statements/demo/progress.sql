-- purpose: how far the operations have come, counted for the progress display
-- guard: none: reading decides nothing
-- index: none: the demo's tables are small
select count(*) as operation_count,
  count(*) filter (where counted.phase not in ('prepared', 'dispatching')) as dispatched_count,
  count(*) filter (where counted.phase = 'uncertain') as uncertain_count,
  count(*) filter (where counted.phase in ('rejected', 'uncertain')
    or counted.final_at is not null and counted.delivery_state <> 'pending') as ended_count,
  coalesce(sum(counted.delivered_count), 0)::bigint as delivered_count
from coatcheck.operations as counted
