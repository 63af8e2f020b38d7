-- purpose: how long flushes of the log took so far, all sessions together, as PostgreSQL 18 counts it
-- guard: none: reading decides nothing
-- index: none: counters
select sum(io.fsync_time)::float8 / 1000 as seconds
from pg_stat_io as io
where io.object = 'wal'
