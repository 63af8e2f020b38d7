-- The operation store, the outbox and the evidence. No foreign keys among these tables (measured: 13-38 % of a lifecycle);
-- `coatcheck audit` checks what they would have promised. No index names a column that changes while an operation lives.

create schema if not exists coatcheck;

-- The two clocks of every statement. Test databases replace them to move time; nothing else may ask the server for it.
create function coatcheck.due_now() returns timestamptz
  language sql stable parallel safe
  as 'select statement_timestamp()';
comment on function coatcheck.due_now() is
  'Finds what is due: stable within a statement, so an index condition can use it.';

create function coatcheck.lease_now() returns timestamptz
  language sql volatile parallel safe
  as 'select clock_timestamp()';
comment on function coatcheck.lease_now() is
  'Ends leases and dates facts: read after any lock wait, inside the locking statement.';

create sequence coatcheck.lease_tokens as bigint cache 1;
comment on sequence coatcheck.lease_tokens is
  'Fencing tokens: a later lease always carries a larger one.';

create table coatcheck.operations (
  operation_id        uuid        not null,
  tenant_id           text        not null,
  operation_key       text        not null,
  provider            text        not null,
  account             text,
  specification_hash  bytea       not null,
  phase               text        not null default 'prepared',
  authorisation       integer     not null default 1,
  authorised_by       text        not null,
  dispatch_id         uuid,
  dispatch_count      integer     not null default 0,
  render_state        text        not null default 'none',
  remote_status       text,
  delivery_state      text        not null default 'not_started',
  output_count        integer     not null default 0,
  delivered_count     integer     not null default 0,
  failed_count        integer     not null default 0,
  remote_job_id       text,
  revision            bigint      not null default 0,
  estimate            numeric,
  unit                text        not null default 'credits',
  priority            smallint    not null default 0,
  not_before_at       timestamptz,
  dispatch_by_at      timestamptz,
  observe_by_at       timestamptz,
  cancel_requested_at timestamptz,
  accepted_at         timestamptz,
  final_at            timestamptz,
  created_at          timestamptz not null,
  updated_at          timestamptz not null,
  constraint operations_pkey primary key (operation_id),
  -- an empty tenant would match an unset session setting
  constraint operations_tenant check (octet_length(tenant_id) between 1 and 255),
  constraint operations_key_length check (octet_length(operation_key) between 1 and 255),
  constraint operations_hash check (octet_length(specification_hash) = 32),
  constraint operations_phase check (phase in (
    'prepared', 'dispatching', 'accepted', 'submission_failed', 'rejected', 'uncertain', 'cancelled', 'abandoned')),
  constraint operations_render_state check (render_state in (
    'none', 'queued', 'rendering', 'succeeded', 'failed', 'moderated', 'cancelled', 'expired', 'missing')),
  -- a remote job is known exactly where the phase says so; write-off may come before or after it was known
  constraint operations_remote_job check (case
    when phase in ('accepted', 'submission_failed') then remote_job_id is not null
    when phase = 'abandoned' then true
    else remote_job_id is null end),
  -- nothing can have been sent without a mark
  constraint operations_mark check (phase in ('prepared', 'cancelled') or (dispatch_id is not null and account is not null)),
  constraint operations_render check (render_state = 'none' or phase in ('accepted', 'submission_failed', 'abandoned')),
  constraint operations_final check ((final_at is not null)
    = (render_state in ('succeeded', 'failed', 'moderated', 'cancelled', 'expired'))),
  -- the delivery axis is the counters, so that two outputs finishing together cannot strand it
  constraint operations_delivery check (delivery_state = case
    when output_count = 0 then 'not_started'
    when delivered_count = output_count then 'delivered'
    when delivered_count + failed_count = output_count then 'failed'
    else 'pending' end),
  constraint operations_counters check (
    output_count >= 0 and delivered_count >= 0 and failed_count >= 0 and delivered_count + failed_count <= output_count),
  constraint operations_estimate check (estimate >= 0 and estimate < 1e18)
) with (fillfactor = 70);
-- the tenant's own list, in keyset order; both columns never change
create index operations_tenant_idx on coatcheck.operations (tenant_id, operation_id);
-- one intent per key of a tenant, for ever: this is what makes enqueue repeatable. Made after the list's index: while the table is small,
-- both look equal to a lookup by key, the later one is taken, and a session keeps that plan as the table grows (measured the other way
-- round: each enqueue walked all of its tenant's operations, 3 ms at 5,000)
alter table coatcheck.operations add constraint operations_key unique (tenant_id, operation_key);
comment on table coatcheck.operations is 'The durable record: one row per intent, narrow and hot, never deleted because a message was sent.';

create table coatcheck.specifications (
  operation_id       uuid not null,
  specification_text text not null,
  constraint specifications_pkey primary key (operation_id)
);
comment on table coatcheck.specifications is 'What was asked, byte for byte what was hashed and what the POST sends. Immutable.';

create function coatcheck.refuse_change() returns trigger
  language plpgsql
  as $$
begin
  raise exception 'coatcheck.% is append-only: rows are never changed', tg_table_name using errcode = '55000';
end
$$;
create trigger specifications_immutable before update on coatcheck.specifications
  for each row execute function coatcheck.refuse_change();

create table coatcheck.outbox (
  operation_id           uuid        not null,
  lane                   smallint    not null,
  action                 text        not null,
  schema_version         smallint    not null default 1,
  provider               text        not null,
  account                text,
  expected_revision      bigint      not null,
  expected_remote_job_id text,
  visible_at             timestamptz not null,
  lease_token            bigint      not null default nextval('coatcheck.lease_tokens'),
  lease_count            integer     not null default 0,
  leased_by              text,
  leased_at              timestamptz,
  wait_reason            text,
  wait_since_at          timestamptz,
  wait_count             integer     not null default 0,
  parked_at              timestamptz,
  park_reason            text,
  -- a message is an address (operation, lane), re-aimed by upsert and never replaced: nothing can be stranded or doubled
  constraint outbox_pkey primary key (operation_id, lane),
  constraint outbox_action check (action in ('dispatch', 'observe', 'reconcile', 'deliver')),
  constraint outbox_lane check (lane >= 0 and (action = 'deliver') = (lane > 0)),
  constraint outbox_parked check ((parked_at is null) = (park_reason is null)),
  constraint outbox_lease check ((leased_by is null) = (leased_at is null) and (parked_at is null or leased_by is null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
-- what is due, per provider and action; visible_at is delay and lease at once
create index outbox_due_idx on coatcheck.outbox (provider, action, visible_at)
  where parked_at is null and action <> 'reconcile';
-- dispatches in flight: where the lease ends, doubt begins, and that needs no provider's adapter
create index outbox_doubt_idx on coatcheck.outbox (visible_at)
  where parked_at is null and action = 'reconcile';
-- what waits for a person
create index outbox_parked_idx on coatcheck.outbox (park_reason, operation_id)
  where parked_at is not null;
comment on table coatcheck.outbox is 'Every message. Lane 0 is the operation''s course, lane i+1 delivers output i.';

create function coatcheck.outcome_rank(outcome text) returns integer
  language sql immutable parallel safe
  as $$
select case
  when outcome = 'open' then 0
  when outcome = 'uncertain' then 1
  when outcome in ('rejected', 'throttled', 'not_sent', 'proven_absent') then 2
  else 3 end
$$;
comment on function coatcheck.outcome_rank(text) is 'An outcome only rises: open < uncertain < refused or absent < an id.';

create table coatcheck.dispatches (
  dispatch_id    uuid        not null,
  operation_id   uuid        not null,
  number         integer     not null,
  authorisation  integer     not null,
  authorised_by  text        not null,
  account        text        not null,
  worker         text        not null,
  begun_at       timestamptz not null,
  send_by_at     timestamptz not null,
  quiescent_at   timestamptz not null,
  ended_at       timestamptz,
  stage          text        not null default 'marked',
  marks_ms       jsonb,
  bytes_sent     bigint      not null default 0,
  bytes_received bigint      not null default 0,
  outcome        text        not null default 'open',
  cause          text,
  http_status    integer,
  remote_job_id  text,
  reply          bytea,
  displaced      boolean     not null default false,
  held           numeric     not null default 0,
  charged        numeric,
  unit           text        not null default 'credits',
  basis          text,
  settled_at     timestamptz,
  constraint dispatches_pkey primary key (dispatch_id),
  constraint dispatches_number unique (operation_id, number),
  constraint dispatches_outcome check (outcome in (
    'open', 'uncertain', 'rejected', 'throttled', 'not_sent', 'proven_absent', 'submission_failed', 'accepted')),
  constraint dispatches_basis check (basis in ('service', 'assumed')),
  constraint dispatches_settled check ((settled_at is null) = (charged is null) and (settled_at is null) = (basis is null)),
  constraint dispatches_reply check (octet_length(reply) <= 4096)
) with (fillfactor = 80);
-- money is spent at most once per authorisation: the last wall behind the mark's own guard
create unique index dispatches_authorisation_idx on coatcheck.dispatches (operation_id, authorisation)
  where outcome not in ('not_sent', 'throttled', 'proven_absent') and not displaced;
comment on table coatcheck.dispatches is 'One row per mark, written before the first byte: the evidence and the money of one POST.';

create table coatcheck.remote_jobs (
  account       text        not null,
  remote_job_id text        not null,
  operation_id  uuid        not null,
  dispatch_id   uuid,
  role          text        not null,
  seen_at       timestamptz not null,
  -- a remote job belongs to at most one operation of an account
  constraint remote_jobs_pkey primary key (account, remote_job_id),
  constraint remote_jobs_role check (role in ('owner', 'orphan'))
);
create index remote_jobs_operation_idx on coatcheck.remote_jobs (operation_id);

create table coatcheck.snapshots (
  operation_id  uuid        not null,
  remote_job_id text        not null,
  remote_status text        not null,
  outputs       jsonb       not null default '[]',
  error_code    text,
  charged       numeric,
  refunded      numeric,
  unit          text,
  seen_at       timestamptz not null,
  constraint snapshots_pkey primary key (operation_id)
) with (fillfactor = 80);
comment on table coatcheck.snapshots is 'The last look worth keeping: no prompt, no free text of the service.';

create table coatcheck.deliveries (
  operation_id  uuid        not null,
  output_index  smallint    not null,
  state         text        not null default 'pending',
  source        text        not null,
  declared_type text,
  declared_bytes bigint,
  declared_sha256 text,
  uri           text,
  sha256        text,
  bytes         bigint,
  sniffed_type  text,
  cause         text,
  updated_at    timestamptz not null,
  constraint deliveries_pkey primary key (operation_id, output_index),
  constraint deliveries_state check (state in ('pending', 'delivered', 'failed')),
  constraint deliveries_delivered check ((state = 'delivered')
    = (uri is not null and sha256 is not null and bytes is not null))
) with (fillfactor = 80);

create table coatcheck.history (
  operation_id        uuid        not null,
  revision            bigint      not null,
  event               text        not null,
  actor               text        not null,
  at                  timestamptz not null,
  from_phase          text,
  to_phase            text        not null,
  from_render_state   text,
  to_render_state     text        not null,
  from_delivery_state text,
  to_delivery_state   text        not null,
  reason              text,
  dispatch_id         uuid,
  action              text,
  lease_count         integer,
  leased_at           timestamptz,
  -- revisions are 0, 1, 2, ... with one row each
  constraint history_pkey primary key (operation_id, revision)
);
create trigger history_append_only before update on coatcheck.history
  for each row execute function coatcheck.refuse_change();
comment on table coatcheck.history is 'Append-only: what changed, by whom, why, and under which message.';

create table coatcheck.incidents (
  operation_id uuid        not null,
  kind         text        not null,
  boundary     text        not null,
  detail       text        not null,
  count        bigint      not null default 1,
  first_at     timestamptz not null,
  last_at      timestamptz not null,
  -- repeating a fault counts, it does not fill the table
  constraint incidents_pkey primary key (operation_id, kind),
  constraint incidents_boundary check (boundary in ('ours', 'network', 'theirs'))
) with (fillfactor = 80);
comment on table coatcheck.incidents is 'Protocol faults, with the side of the boundary they lie on.';

create table coatcheck.providers (
  name                  text        not null,
  account               text        not null,
  kind                  text        not null,
  default_estimate      numeric,
  unit                  text        not null default 'credits',
  dispatch_paused_at    timestamptz,
  dispatch_pause_reason text,
  dispatch_paused_by    text,
  forbidden_count       integer     not null default 0,
  constraint providers_pkey primary key (name),
  constraint providers_estimate check (default_estimate >= 0),
  constraint providers_pause check ((dispatch_paused_at is null) = (dispatch_pause_reason is null)
    and (dispatch_paused_at is null) = (dispatch_paused_by is null))
);
comment on table coatcheck.providers is 'Configured names, their accounts and the pause of an account''s dispatch.';

create table coatcheck.workers (
  incarnation               text        not null,
  version                   text        not null,
  roles                     text[]      not null,
  started_at                timestamptz not null,
  seen_at                   timestamptz not null,
  stopped_at                timestamptz,
  stale                     jsonb       not null default '{}',
  lease_renewal_failures_count bigint   not null default 0,
  action_ms                 jsonb       not null default '{}',
  constraint workers_pkey primary key (incarnation)
);
comment on table coatcheck.workers is 'Incarnations, for display only: no rule rests on a heartbeat.';

create table coatcheck.wake_ups (
  only_row       boolean     not null default true,
  sleeping_until timestamptz not null,
  constraint wake_ups_pkey primary key (only_row),
  constraint wake_ups_only_row check (only_row)
);
insert into coatcheck.wake_ups (sleeping_until) values ('-infinity');
comment on table coatcheck.wake_ups is 'Until when some worker sleeps: enqueue notifies only then, so load pays nothing for hints.';
