-- Least privilege: the application's role may call enqueue_v1 and nothing else. Roles belong to the whole server, so they may exist
-- already, and a migrating user without CREATEROLE leaves them to an administrator (docs/operating.md lists the statements).

revoke all on schema coatcheck from public;
revoke all on all functions in schema coatcheck from public;

do $$
declare
  wanted text;
begin
  foreach wanted in array array['coatcheck_owner', 'coatcheck_worker', 'coatcheck_api', 'coatcheck_app'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = wanted)
      and (select rolcreaterole or rolsuper from pg_catalog.pg_roles where rolname = current_user) then
      begin
        execute format('create role %I nologin', wanted);
      exception when duplicate_object or unique_violation then
        null; -- another database's migration made it meanwhile
      end;
    end if;
  end loop;
  if exists (select from pg_catalog.pg_roles where rolname = 'coatcheck_worker') then
    grant usage on schema coatcheck to coatcheck_worker;
    grant select, insert, update, delete on all tables in schema coatcheck to coatcheck_worker;
    revoke update on coatcheck.specifications, coatcheck.history from coatcheck_worker;
    grant usage on all sequences in schema coatcheck to coatcheck_worker;
    grant execute on all functions in schema coatcheck to coatcheck_worker;
  end if;
  if exists (select from pg_catalog.pg_roles where rolname = 'coatcheck_app') then
    grant usage on schema coatcheck to coatcheck_app;
    grant execute on function coatcheck.enqueue_v1(jsonb) to coatcheck_app;
  end if;
  -- the definer function must not run as whoever happened to migrate, least of all as a superuser
  if exists (select from pg_catalog.pg_roles where rolname = 'coatcheck_owner') then
    begin
      if not pg_catalog.pg_has_role(current_user, 'coatcheck_owner', 'member') then
        execute format('grant coatcheck_owner to %I', current_user);
      end if;
      for wanted in
        select format('alter %s %s owner to coatcheck_owner',
            case relation.relkind when 'S' then 'sequence' else 'table' end, relation.oid::regclass)
          from pg_catalog.pg_class as relation
          where relation.relnamespace = 'coatcheck'::regnamespace and relation.relkind in ('r', 'S')
            and relation.relname <> 'schema_migrations'
        union all
        select format('alter function %s owner to coatcheck_owner', routine.oid::regprocedure)
          from pg_catalog.pg_proc as routine where routine.pronamespace = 'coatcheck'::regnamespace
      loop
        execute 'grant create, usage on schema coatcheck to coatcheck_owner';
        execute wanted;
      end loop;
    exception when insufficient_privilege then
      raise notice 'coatcheck_owner does not own the tables: run this migration as a superuser or a role with CREATEROLE';
    end;
  end if;
end
$$;
