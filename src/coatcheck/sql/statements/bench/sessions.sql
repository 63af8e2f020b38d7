-- purpose: how many sessions of workers there still are: their counters are complete when they have ended
-- guard: none: reading decides nothing
-- index: none: a view of the server's own
select count(*) as session_count
from pg_stat_activity as session
where session.datname = current_database() and session.pid <> pg_backend_pid()
  and session.application_name like 'coatcheck %%' and session.application_name <> 'coatcheck bench'
