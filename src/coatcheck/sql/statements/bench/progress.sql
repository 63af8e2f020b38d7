-- purpose: how far a measurement's operations have come; a finished one has no lane any more
-- guard: none: reading decides nothing
-- index: none: what is left of the outbox is what is counted
select count(*) as lane_count,
  count(*) filter (where lane.action = 'dispatch') as prepared_count,
  count(*) filter (where lane.action = 'observe') as observed_count
from coatcheck.outbox as lane
