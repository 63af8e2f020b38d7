-- purpose: dispatches whose end nobody has saved yet: what a worker has in flight
-- guard: none: reading decides nothing
-- index: none: the demo's tables are small
select sent.operation_id, sent.worker
from coatcheck.dispatches as sent
where sent.outcome = 'open'
