-- A tenant's money, fuller evidence of a dispatch, orphans that somebody dealt with, and the name of this installation.
-- oldest code: 0004, because code before it neither holds nor charges what it dispatches, and an allowance would be passed over.

create table coatcheck.allowances (
  tenant_id  text        not null,
  unit       text        not null,
  ceiling    numeric,
  held       numeric     not null default 0,
  charged    numeric     not null default 0,
  set_by     text        not null,
  updated_at timestamptz not null,
  constraint allowances_pkey primary key (tenant_id, unit),
  constraint allowances_tenant check (octet_length(tenant_id) between 1 and 255),
  constraint allowances_unit check (octet_length(unit) between 1 and 32),
  constraint allowances_ceiling check (ceiling >= 0 and ceiling < 1e18),
  -- what is held is the sum of dispatches that are not settled, so it is never less than nothing
  constraint allowances_amounts check (held >= 0 and charged >= 0)
) with (fillfactor = 50);
comment on table coatcheck.allowances is
  'What a tenant may spend in a unit, and what of it is held and charged: the sums over its dispatches (S11). No row: no limit.';
comment on column coatcheck.allowances.ceiling is
  'Asked only when a hold is taken; settling is never refused. Null: counted without a limit.';

-- what names a request at the service's own support, and an id that a reply showed without being whole
alter table coatcheck.dispatches
  add column request_ids jsonb,
  add column candidate_id text,
  add column orphaned numeric not null default 0,
  -- a negative amount would let a tenant spend what nobody gave
  add constraint dispatches_amounts check (held >= 0 and charged >= 0 and orphaned >= 0);
-- whose job is it? Every dispatch of an account that may have made one, also of an operation that was written off or sent again
create index dispatches_doubt_idx on coatcheck.dispatches (account, begun_at) where outcome in ('open', 'uncertain');
comment on column coatcheck.dispatches.orphaned is
  'What jobs cost that the same POST made besides the one that it is known by; a part of charged once it is settled.';

alter table coatcheck.remote_jobs
  add column resolved_at timestamptz,
  add column resolved_by text,
  add column resolution text,
  add constraint remote_jobs_resolved check ((resolved_at is null) = (resolved_by is null) and (resolved_at is null) = (resolution is null));
-- orphans are few, and a person asks for all of them
create index remote_jobs_orphans_idx on coatcheck.remote_jobs (operation_id) where role = 'orphan';
comment on table coatcheck.remote_jobs is 'Who owns each remote job; an orphan is a paid job that no operation could take.';

create table coatcheck.installation (
  only_row        boolean not null default true,
  installation_id uuid    not null default gen_random_uuid(),
  constraint installation_pkey primary key (only_row),
  constraint installation_only_row check (only_row)
);
insert into coatcheck.installation default values;
comment on table coatcheck.installation is 'Which database this is, whatever address it is reached at: what lies in a spool belongs to one of them.';

create or replace function coatcheck.enqueue_v1(request jsonb) returns jsonb
  language plpgsql volatile security definer
  set search_path = pg_catalog, coatcheck, pg_temp
  as $$
declare
  refusal text := enqueue_refusal(request);
  -- plain values: two expressions to look up by seem dearer than one, and the planner would walk all of a tenant's rows instead
  tenant text := request ->> 'tenant_id';
  key text := request ->> 'operation_key';
  destination text := request ->> 'provider';
  specification text := request ->> 'specification_text';
  hash bytea;
  new_operation_id uuid;
  created boolean;
  at timestamptz;
  due timestamptz;
  amount numeric;
  money text;
  stored record;
begin
  if refusal is not null then
    return jsonb_build_object('result', 'refused', 'reason', refusal);
  end if;
  -- a default in one unit says nothing of an amount in another
  select coalesce((request ->> 'estimate')::numeric,
      case when configured.unit = coalesce(request ->> 'unit', configured.unit) then configured.default_estimate end),
      coalesce(request ->> 'unit', configured.unit, 'credits')
    into amount, money
    from (select) as one_row left join providers as configured on configured.name = destination;
  -- what has a limit needs an amount to hold; a key that is there already is answered as it is
  if amount is null and exists (select from allowances where tenant_id = tenant and unit = money and ceiling is not null)
    and not exists (select from operations where tenant_id = tenant and operation_key = key) then
    return jsonb_build_object('result', 'refused', 'reason',
      format('estimate must be given: the tenant has an allowance in %s, and the provider has no default estimate', money));
  end if;
  hash := sha256(convert_to(specification, 'UTF8'));
  new_operation_id := new_id();
  at := lease_now();
  due := greatest(at, (request ->> 'not_before_at')::timestamptz);
  insert into operations (operation_id, tenant_id, operation_key, provider, specification_hash, authorised_by, estimate, unit,
      priority, not_before_at, dispatch_by_at, created_at, updated_at)
    values (new_operation_id, tenant, key, destination, hash, session_user, amount, money,
      coalesce((request ->> 'priority')::smallint, 0), (request ->> 'not_before_at')::timestamptz,
      (request ->> 'dispatch_by_at')::timestamptz, at, at)
    on conflict (tenant_id, operation_key) do nothing;
  get diagnostics created = row_count;
  if created then
    insert into specifications (operation_id, specification_text)
      values (new_operation_id, specification);
    insert into history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
      values (new_operation_id, 0, 'generation_requested', session_user, at, 'prepared', 'none', 'not_started');
    insert into outbox (operation_id, lane, action, provider, expected_revision, visible_at)
      values (new_operation_id, 0, 'dispatch', destination, 0, due);
    if exists (select from wake_ups where sleeping_until > due_now()) then
      perform pg_notify('coatcheck', '');
    end if;
  end if;
  -- a second statement: within the inserting one, a row committed by the winner of a race is not visible
  select operations.operation_id, provider, specification_hash, revision, phase into strict stored
    from operations
    where tenant_id = tenant and operation_key = key;
  return jsonb_build_object(
    'result', case
      when created then 'created'
      when stored.specification_hash = hash and stored.provider = destination then 'existing'
      else 'key_reused' end,
    'operation_id', operation_text(stored.operation_id),
    'revision', stored.revision,
    'phase', stored.phase,
    'specification_hash', encode(stored.specification_hash, 'hex'));
end
$$;
comment on function coatcheck.enqueue_v1(jsonb) is
  'Enqueue in the caller''s transaction. Same key, specification and provider: the same operation. Never raises on data.';

create function coatcheck.hand_over() returns void
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
comment on function coatcheck.hand_over() is
  'The last line of a migration: what it made belongs to coatcheck_owner, and the roles of 0003 may use it as they use the rest.';
revoke all on function coatcheck.hand_over() from public;

select coatcheck.hand_over();
