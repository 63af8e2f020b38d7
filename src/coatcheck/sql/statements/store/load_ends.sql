-- purpose: what is known of the ends of dispatches, by their ids: whoever holds the end of a POST learns whether it was told already
-- guard: reads only
-- index: dispatches_pkey
select dispatch_id, outcome, remote_job_id
from coatcheck.dispatches
where dispatch_id = any(%(dispatch_id)s::uuid[]) and ended_at is not null
