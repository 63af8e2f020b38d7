-- purpose: how long flushes of the log took so far, all sessions together, as PostgreSQL counted it before 18, which has no such column
-- guard: none: reading decides nothing
-- index: none: counters
select (to_jsonb(wal) ->> 'wal_sync_time')::float8 / 1000 as seconds
from pg_stat_wal as wal
