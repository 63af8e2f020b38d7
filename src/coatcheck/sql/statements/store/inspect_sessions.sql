-- purpose: what a session of ours is to the server, and how long the oldest snapshot keeps dead rows, for doctor
-- guard: none: reading decides nothing
-- index: none: it is a list of the server's own
select pg_catalog.pg_backend_pid() as backend_pid, coatcheck.lease_now() as at,
  current_setting('default_transaction_isolation') as isolation,
  coalesce(max(extract(epoch from coatcheck.lease_now() - other.xact_start)), 0)::float8 as snapshot_age_s,
  -- of sessions of other roles, only members of pg_read_all_stats see when their transactions began
  count(*) filter (where other.backend_xmin is not null and other.xact_start is null) as hidden_count
from pg_catalog.pg_stat_activity as other
where other.datname = current_database() and other.pid <> pg_catalog.pg_backend_pid()
