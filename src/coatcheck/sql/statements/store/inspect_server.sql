-- purpose: which server and which role these are, for doctor
-- guard: none: reading decides nothing, and it needs no schema of ours
-- index: pg_roles and pg_class, a row of each
select current_setting('server_version_num')::integer / 10000 as major_version,
  current_setting('server_version') as version,
  current_setting('transaction_read_only') = 'on' as is_read_only,
  me.rolname as role,
  me.rolsuper as is_superuser,
  me.rolbypassrls as bypasses_row_security,
  coalesce(pg_catalog.pg_has_role(current_user, own.relowner, 'usage'), false) as is_owner
from pg_catalog.pg_roles as me
left join pg_catalog.pg_class as own on own.oid = to_regclass('coatcheck.operations')
where me.rolname = current_user
