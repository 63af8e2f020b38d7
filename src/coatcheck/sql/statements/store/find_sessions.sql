-- purpose: which of the sessions whose connections broke are still there, and may still carry out what they were sent
-- guard: the name, too: a number that a pooler made up may be another session's
-- index: none: it is a list of the server's own
select session.pid
from pg_catalog.pg_stat_activity as session
where session.pid = any(%(pid)s::integer[]) and session.application_name = %(name)s::text
