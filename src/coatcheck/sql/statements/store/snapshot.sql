-- purpose: what a batch of looks changed: render state, outputs to deliver, money, and the lanes that follow
-- guard: revision and remote job id; a final state is never replaced
-- index: operations_pkey, snapshots_pkey, deliveries_pkey, dispatches_pkey, allowances_pkey, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(revision)s::bigint[], %(remote_job_id)s::text[], %(event)s::text[],
      %(remote_status)s::text[], %(render_state)s::text[], %(settles)s::boolean[], %(error_code)s::text[],
      %(charged)s::numeric[], %(refunded)s::numeric[], %(unit)s::text[])
    as i(operation_id, revision, remote_job_id, event, remote_status, render_state, settles, error_code, charged, refunded, unit)
),
locked as materialized (
  select held.operation_id, held.tenant_id, held.account, held.phase, held.render_state, held.delivery_state, held.dispatch_id,
    held.remote_job_id, held.revision, held.final_at
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
judged as materialized (
  select input.*, %(worker)s::text as actor, input.error_code as reason, 0::smallint as message_lane, locked.dispatch_id,
    locked.tenant_id, locked.account, locked.phase as from_phase, locked.render_state as from_render_state, locked.delivery_state as from_delivery_state,
    locked.final_at is not null as was_final,
    coalesce(locked.revision = input.revision and locked.remote_job_id = input.remote_job_id
      and locked.phase in ('accepted', 'submission_failed')
      and (locked.final_at is null or locked.render_state = input.render_state), false) as applies
  from input
  left join locked using (operation_id)
),
money as materialized (
  select held.dispatch_id, held.unit, held.held, held.charged, held.orphaned, held.basis, held.settled_at
  from coatcheck.dispatches as held
  where held.dispatch_id in (select dispatch_id from judged where applies and settles)
  order by held.dispatch_id
  for no key update
),
-- no refund makes a charge less than nothing: a tenant does not earn by what a service says
said as materialized (
  select judged.operation_id, judged.tenant_id, money.dispatch_id, money.unit, money.held, money.charged, money.orphaned, money.basis, money.settled_at,
    case when judged.charged is not null then greatest(0, judged.charged - coalesce(judged.refunded, 0)) end as figure,
    coalesce(judged.unit, money.unit) = money.unit as in_our_unit
  from money
  join judged using (dispatch_id)
  where judged.applies
),
-- the service's figure, else what was held, as assumed; a later figure replaces either
figures as materialized (
  select operation_id, tenant_id, dispatch_id, unit, held, charged, settled_at, figure, in_our_unit,
    case when in_our_unit and figure is not null then figure + orphaned else coalesce(charged, held + orphaned) end as charged_now,
    case when in_our_unit and figure is not null then 'service' else coalesce(basis, 'assumed') end as basis_now
  from said
),
settlements as (
  update coatcheck.dispatches as kept set
    charged = figures.charged_now,
    basis = figures.basis_now,
    settled_at = coalesce(kept.settled_at, coatcheck.lease_now())
  from figures
  where kept.dispatch_id = figures.dispatch_id
),
account_news as (
  select account, null::float8 as shut_s,
    coatcheck.is_in_flight(from_phase, render_state)::integer - coatcheck.is_in_flight(from_phase, from_render_state)::integer as flights
  from judged
  where applies
),
-- include: account_news
amounts as (
  select tenant_id, unit, case when settled_at is null then -held else 0 end as held, charged_now - coalesce(charged, 0) as charged
  from figures
  -- accounts are locked before allowances, as everywhere
  where (select count(*) from account_locks) >= 0
),
-- include: allowances
output_rows as (
  select *
  from unnest(%(output_operation_id)s::uuid[], %(output_index)s::smallint[], %(output_source)s::text[], %(output_type)s::text[],
      %(output_bytes)s::bigint[], %(output_sha256)s::text[])
    as output(operation_id, output_index, source, declared_type, declared_bytes, declared_sha256)
),
sources as (
  insert into coatcheck.deliveries as held (operation_id, output_index, source, declared_type, declared_bytes, declared_sha256,
    updated_at)
  select output.operation_id, output.output_index, output.source, output.declared_type, output.declared_bytes,
    output.declared_sha256, coatcheck.lease_now()
  from output_rows as output
  join judged using (operation_id)
  where judged.applies
  order by output.operation_id, output.output_index
  on conflict (operation_id, output_index) do update set source = excluded.source, updated_at = excluded.updated_at
    where held.state <> 'delivered'
),
looks as (
  insert into coatcheck.snapshots as held (operation_id, remote_job_id, remote_status, error_code, charged, refunded, unit, seen_at)
  select operation_id, remote_job_id, remote_status, error_code, charged, refunded, unit, coatcheck.lease_now()
  from judged
  where applies
  order by operation_id
  on conflict (operation_id) do update set
    remote_status = excluded.remote_status,
    error_code = coalesce(excluded.error_code, held.error_code),
    charged = coalesce(excluded.charged, held.charged),
    refunded = coalesce(excluded.refunded, held.refunded),
    unit = coalesce(excluded.unit, held.unit),
    seen_at = excluded.seen_at
),
written as (
  update coatcheck.operations as stored set
    render_state = judged.render_state,
    remote_status = judged.remote_status,
    output_count = case when judged.was_final then stored.output_count else counted.outputs end,
    delivery_state = case when judged.was_final or counted.outputs = 0 then stored.delivery_state else 'pending' end,
    final_at = case when judged.settles then coalesce(stored.final_at, coatcheck.lease_now()) end,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  cross join lateral (
    select count(*)::integer as outputs from output_rows as output where output.operation_id = judged.operation_id) as counted
  -- allowances are locked before lanes, as everywhere
  where judged.applies and stored.operation_id = judged.operation_id and (select count(*) from allowance_locks) >= 0
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.remote_job_id, stored.tenant_id, stored.priority, stored.dispatch_by_at
),
-- include: lane_changes
-- include: lanes
-- include: chronicle
incidents as (
  insert into coatcheck.incidents as held (operation_id, kind, boundary, detail, first_at, last_at)
  select operation_id, 'unit_differs', 'theirs', 'the service charged in another unit than was held', coatcheck.lease_now(),
    coatcheck.lease_now()
  from figures
  where figure is not null and not in_our_unit
  order by operation_id
  on conflict (operation_id, kind) do update set count = held.count + 1, last_at = excluded.last_at
)
select judged.operation_id, case when judged.applies then 'applied' else 'stale' end as status, written.revision
from judged
left join written using (operation_id)
