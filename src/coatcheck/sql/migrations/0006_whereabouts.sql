-- Which server and history this database was last dispatched from, so that a restored or promoted one is noticed.
-- oldest code: 0006, because code before it would dispatch on a restored or promoted server without asking.

create function coatcheck.whereabouts(out system_identifier text, out timeline integer, out made_as oid)
  language sql volatile
  as $$
  select control.system_identifier::text,
    -- the control file names a new timeline only after the first checkpoint on it, and a standby has none of its own
    case when not pg_is_in_recovery() then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end,
    'coatcheck.installation'::regclass::oid
  from pg_control_system() as control
  $$;
comment on function coatcheck.whereabouts() is
  'The cluster, its timeline and the table itself: a copied cluster keeps all three until it is promoted, a loaded dump none for certain.';

alter table coatcheck.installation
  add column system_identifier text,
  add column timeline integer,
  add column made_as oid,
  add column changed_at timestamptz,
  add column restored_at timestamptz,
  add column restored_reason text;
comment on column coatcheck.installation.changed_at is
  'When it was last seen to be another server or timeline; restored_at, when that paused every account.';
update coatcheck.installation set (system_identifier, timeline, made_as) = (select here.* from coatcheck.whereabouts() as here);

alter table coatcheck.providers
  add column dispatch_resumed_at timestamptz,
  add column dispatch_resume_reason text,
  add column dispatch_resumed_by text;
comment on column coatcheck.providers.dispatch_resumed_at is 'The last end of a pause, with who ended it and why.';

create or replace function coatcheck.hand_over() returns void
  language plpgsql
  set search_path = pg_catalog, coatcheck, pg_temp
  as $$
declare
  wanted text;
begin
  revoke all on all functions in schema coatcheck from public;
  if exists (select from pg_roles where rolname = 'coatcheck_worker') then
    grant select, insert, update, delete on all tables in schema coatcheck to coatcheck_worker;
    revoke update on coatcheck.specifications, coatcheck.history from coatcheck_worker;
    revoke insert, update, delete on coatcheck.installation from coatcheck_worker;
    -- whose database a spool belongs to is never changed; where it lies is noted by whichever worker finds it elsewhere
    grant update (system_identifier, timeline, made_as, changed_at, restored_at, restored_reason) on coatcheck.installation to coatcheck_worker;
    grant usage on all sequences in schema coatcheck to coatcheck_worker;
    grant execute on all functions in schema coatcheck to coatcheck_worker;
  end if;
  if exists (select from pg_roles where rolname = 'coatcheck_app') then
    grant execute on function coatcheck.enqueue_v1(jsonb) to coatcheck_app;
  end if;
  if exists (select from pg_roles where rolname = 'coatcheck_owner') then
    for wanted in
      select format('alter %s %s owner to coatcheck_owner',
          case relation.relkind when 'S' then 'sequence' else 'table' end, relation.oid::regclass)
        from pg_class as relation
        where relation.relnamespace = 'coatcheck'::regnamespace and relation.relkind in ('r', 'S')
          and relation.relname <> 'schema_migrations'
      union all
      select format('alter function %s owner to coatcheck_owner', routine.oid::regprocedure)
        from pg_proc as routine where routine.pronamespace = 'coatcheck'::regnamespace and routine.proname <> 'hand_over'
    loop
      execute wanted;
    end loop;
  end if;
exception when insufficient_privilege then
  raise notice 'coatcheck_owner does not own the tables: run this migration as a superuser or a role with CREATEROLE';
end
$$;

select coatcheck.hand_over();
