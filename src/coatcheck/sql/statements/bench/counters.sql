-- purpose: what PostgreSQL has counted so far: transactions and rows written here, and the log of the whole server
-- guard: none: reading decides nothing
-- index: none: counters
select counted.xact_commit + counted.xact_rollback as transaction_count,
  counted.tup_inserted + counted.tup_updated + counted.tup_deleted as row_count,
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as wal_bytes,
  (select wal.wal_fpi from pg_stat_wal as wal) as image_count
from pg_stat_database as counted
where counted.datname = current_database()
