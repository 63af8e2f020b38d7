-- What an account may be asked for, whose turn it is among tenants, and pauses of its looks.
-- oldest code: 0006, because code before it may ask and look more than a budget allows, but loses nothing: set budgets when its last worker is gone.

create table coatcheck.accounts (
  account                 text        not null,
  max_in_flight           integer,
  in_flight_count         integer     not null default 0,
  dispatches_per_s        double precision,
  dispatch_turn_at        timestamptz,
  dispatch_shut_until     timestamptz,
  looks_per_s             double precision,
  look_turn_at            timestamptz,
  look_shut_until         timestamptz,
  look_floor_s            double precision,
  observation_paused_at   timestamptz,
  observation_pause_reason text,
  observation_paused_by   text,
  observation_probe_at    timestamptz,
  observation_resumed_at  timestamptz,
  observation_resume_reason text,
  observation_resumed_by  text,
  failed_look_count       integer     not null default 0,
  failed_probe_count      integer     not null default 0,
  constraint accounts_pkey primary key (account),
  constraint accounts_budgets check (max_in_flight >= 0 and dispatches_per_s > 0 and looks_per_s > 0 and look_floor_s >= 0),
  constraint accounts_counts check (in_flight_count >= 0 and failed_look_count >= 0 and failed_probe_count >= 0),
  constraint accounts_pause check ((observation_paused_at is null) = (observation_pause_reason is null)
    and (observation_paused_at is null) = (observation_paused_by is null)
    and (observation_probe_at is null or observation_paused_at is not null))
) with (fillfactor = 50);
comment on table coatcheck.accounts is
  'What all workers together may ask of an account at its service; null is no limit. What is counted is counted under the lock of its row.';
comment on column coatcheck.accounts.in_flight_count is
  'Operations of the account that the service may be working on, while there is a limit to it: dispatching, in doubt, or known and not over.';
comment on column coatcheck.accounts.dispatch_turn_at is
  'Until when the marks so far use up dispatches_per_s; look_turn_at the same of looks. A service that asked for patience shuts either.';
comment on column coatcheck.accounts.observation_probe_at is
  'When a pause that nobody ordered is tried with one look; null: only a person ends it.';
insert into coatcheck.accounts (account) select distinct account from coatcheck.providers;

-- dispatches in a row that ended in doubt: each may have cost something, so they do not go on without a person
alter table coatcheck.providers
  add column doubt_count integer not null default 0,
  add column doubt_limit integer default 20,
  add constraint providers_doubts check (doubt_count >= 0 and doubt_limit > 0);

-- whose message it is, so that tenants take turns; what is there already, and what older code adds, takes one turn together
alter table coatcheck.outbox
  add column tenant_id text not null default '',
  add column precedence smallint not null default 0,
  add column dispatch_by_at timestamptz;
comment on column coatcheck.outbox.precedence is 'The operation''s priority, negated: within a tenant the smaller one comes first.';
create index outbox_turn_idx on coatcheck.outbox (provider, action, tenant_id, precedence, visible_at)
  where parked_at is null and action <> 'reconcile';
comment on column coatcheck.outbox.dispatch_by_at is 'The operation''s deadline: it ends also while its account has no leave for a dispatch.';
create index outbox_deadline_idx on coatcheck.outbox (provider, dispatch_by_at)
  where parked_at is null and action = 'dispatch' and dispatch_by_at is not null;

create function coatcheck.is_in_flight(phase text, render_state text) returns boolean
  language sql immutable parallel safe
  as $$
select phase in ('dispatching', 'uncertain')
  or (phase in ('accepted', 'submission_failed') and render_state in ('none', 'queued', 'rendering'))
$$;
comment on function coatcheck.is_in_flight(text, text) is 'Whether the service may be working on it. What is in doubt counts until it is decided.';

create function coatcheck.tokens(per_s double precision, turn_at timestamptz, shut_until timestamptz, at timestamptz) returns integer
  language sql immutable parallel safe
  as $$
select case
  when shut_until > at then 0
  when per_s is null then null
  -- never more than a tenth of a second's worth at once, so that no second sees much more than its rate
  else greatest(0, floor(greatest(1, per_s / 10) - per_s * coalesce(greatest(0, extract(epoch from turn_at - at)), 0) + 1e-6))::integer end
$$;
comment on function coatcheck.tokens(double precision, timestamptz, timestamptz, timestamptz) is
  'How many requests a rate allows at this instant; null: any number. The generic cell rate algorithm with a tenth of a second of tolerance.';

create function coatcheck.token_in_s(per_s double precision, turn_at timestamptz, shut_until timestamptz, at timestamptz, number integer)
  returns double precision
  language sql immutable parallel safe
  as $$
select greatest(0, extract(epoch from shut_until - at),
  (number - greatest(1, per_s / 10)) / per_s + coalesce(greatest(0, extract(epoch from turn_at - at)), 0))::double precision
$$;
comment on function coatcheck.token_in_s(double precision, timestamptz, timestamptz, timestamptz, integer) is
  'In how many seconds a rate allows so many requests, if none is made before.';

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
    insert into outbox (operation_id, lane, action, provider, expected_revision, visible_at, tenant_id, precedence,
        dispatch_by_at)
      values (new_operation_id, 0, 'dispatch', destination, 0, due, tenant, -coalesce((request ->> 'priority')::smallint, 0),
        (request ->> 'dispatch_by_at')::timestamptz);
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

select coatcheck.hand_over();
