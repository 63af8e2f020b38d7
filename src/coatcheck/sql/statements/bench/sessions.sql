-- purpose: how many sessions of workers there are: what they hold, and once there is none their counters are complete
-- guard: none: reading decides nothing
-- index: none: a view of the server's own
select count(*) as session_count
from pg_stat_activity as session
where session.datname = current_database() and session.pid <> pg_backend_pid()
  and session.application_name like 'coatcheck %%' and session.application_name <> 'coatcheck bench'
