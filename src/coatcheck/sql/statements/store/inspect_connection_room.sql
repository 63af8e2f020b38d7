-- purpose: how many connections the server, the role and the database allow, and how many are taken, for doctor and for workers that start
-- guard: none: reading decides nothing, and a count is of its moment
-- index: none: lists of the server's own
select pg_catalog.pg_backend_pid() as backend_pid, me.rolname as role, here.datname as database,
  current_setting('max_connections')::integer as server_count,
  -- what is kept free for others than this role
  case when me.rolsuper then 0
    when exists (
      select from pg_catalog.pg_roles as spare
      where spare.rolname = 'pg_use_reserved_connections' and pg_catalog.pg_has_role(me.oid, spare.oid, 'usage')
    ) then current_setting('superuser_reserved_connections')::integer
    else current_setting('superuser_reserved_connections')::integer
      + coalesce(current_setting('reserved_connections', true), '0')::integer
  end as reserved_count,
  -- superusers are held to neither of the two
  case when not me.rolsuper and me.rolconnlimit >= 0 then me.rolconnlimit end as role_count,
  case when not me.rolsuper and here.datconnlimit >= 0 then here.datconnlimit end as database_count,
  taken.by_all_count, taken.by_role_count, taken.in_database_count
from pg_catalog.pg_roles as me
join pg_catalog.pg_database as here on here.datname = current_database()
cross join lateral (
  select count(*) as by_all_count,
    count(*) filter (where other.usesysid = me.oid) as by_role_count,
    count(*) filter (where other.datid = here.oid) as in_database_count
  from pg_catalog.pg_stat_activity as other
  -- of sessions of other roles not everybody sees the kind: who has a role and a database counts
  where other.usesysid is not null and other.datid is not null and coalesce(other.backend_type, 'client backend') = 'client backend'
    and other.pid <> pg_catalog.pg_backend_pid()
) as taken
where me.rolname = session_user
