-- purpose: what became of a measurement's operations, and how long they took from the first mark to the last save, by the database's clock
-- guard: none: reading decides nothing
-- index: none: read once, when all is over
select count(*) as operation_count,
  count(*) filter (where lived.render_state = 'succeeded' and lived.delivery_state = 'delivered'
    and lived.dispatch_count = 1) as delivered_count,
  (select count(*) from coatcheck.outbox) as lane_count,
  extract(epoch from max(lived.updated_at) - (select min(begun_at) from coatcheck.dispatches))::float8 as seconds
from coatcheck.operations as lived
