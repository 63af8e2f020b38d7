-- purpose: to whom each remote job belongs, for the account
-- guard: none: reading decides nothing
-- index: none: the demo's tables are small
select known.remote_job_id, known.operation_id, known.role
from coatcheck.remote_jobs as known
order by known.remote_job_id
