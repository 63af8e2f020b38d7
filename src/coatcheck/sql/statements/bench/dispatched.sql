-- purpose: how many ends of POSTs are saved
-- guard: none: reading decides nothing
-- index: none: counted while a measurement runs
select count(*) filter (where sent.ended_at is not null) as ended_count
from coatcheck.dispatches as sent
