-- purpose: the measures that tell a backlog's cause, in one pass over each table
-- guard: none: reading decides nothing
-- index: none for the outbox, which holds only what is unfinished; operations_pkey, dispatches_number, remote_jobs_orphans_idx
with clock as (
  select coatcheck.due_now() as at
),
lanes as materialized (
  select held.operation_id, held.lane, held.action, held.wait_reason, held.parked_at, held.park_reason,
    extract(epoch from clock.at - held.visible_at)::float8 as due_for_s
  from coatcheck.outbox as held
  cross join clock
),
queues as (
  select action, count(*) as due_count, max(due_for_s) as age_s, count(*) filter (where due_for_s > %(unclaimed_s)s::float8) as unclaimed_count
  from lanes
  where parked_at is null and due_for_s >= 0
  group by action
),
waits as (
  select wait_reason, count(*) as lane_count
  from lanes
  where parked_at is null and wait_reason is not null
  group by wait_reason
),
parks as (
  select park_reason, count(*) as lane_count
  from lanes
  where parked_at is not null
  group by park_reason
),
renders as (
  select max(extract(epoch from clock.at - operation.accepted_at))::float8 as age_s
  from lanes
  join coatcheck.operations as operation on operation.operation_id = lanes.operation_id
  cross join clock
  where lanes.lane = 0 and operation.phase in ('accepted', 'submission_failed') and operation.final_at is null
),
-- by way of the outbox, as an operation is not finished before its money is settled; what waits to be sent holds nothing
sent as materialized (
  select operation.operation_id, operation.phase = 'uncertain' as is_uncertain, operation.dispatch_id = dispatch.dispatch_id as is_last,
    extract(epoch from clock.at - dispatch.begun_at)::float8 as age_s, dispatch.unit,
    case when dispatch.settled_at is null then dispatch.held else 0 end as held
  from lanes
  join coatcheck.operations as operation on operation.operation_id = lanes.operation_id
  join coatcheck.dispatches as dispatch on dispatch.operation_id = lanes.operation_id
  cross join clock
  where lanes.lane = 0 and lanes.action <> 'dispatch'
),
holds as (
  select unit, sum(held) as held
  from sent
  where held > 0
  group by unit
),
risks as (
  select unit, sum(held) as held
  from sent
  where held > 0 and is_uncertain
  group by unit
),
staleness as (
  select cause.key as cause, sum(cause.value::bigint) as stale_count
  from coatcheck.workers as known
  cross join lateral jsonb_each_text(known.stale) as cause
  group by cause.key
),
durations as (
  select took.key as action, sum((took.value ->> 'count')::bigint) as action_count,
    sum((took.value ->> 'total_ms')::bigint) as total_ms, max((took.value ->> 'max_ms')::bigint) as max_ms
  from coatcheck.workers as known
  cross join lateral jsonb_each(known.action_ms) as took
  group by took.key
)
select
  coalesce((select max(age_s) from queues), 0) as queue_age_s,
  coalesce((select jsonb_object_agg(action, age_s) from queues), '{}') as queue_age_by_action_s,
  coalesce((select jsonb_object_agg(action, due_count) from queues), '{}') as due,
  coalesce((select sum(unclaimed_count) from queues), 0)::bigint as unclaimed_count,
  coalesce((select jsonb_object_agg(wait_reason, lane_count) from waits), '{}') as waiting,
  coalesce((select jsonb_object_agg(park_reason, lane_count) from parks), '{}') as parked,
  coalesce((select lane_count from parks where park_reason = 'uncertain'), 0)
    + coalesce((select lane_count from waits where wait_reason = 'lookup'), 0) as uncertain_count,
  coalesce((select max(age_s) from sent where is_uncertain and is_last), 0) as uncertain_age_s,
  coalesce((select jsonb_object_agg(unit, held::text) from risks), '{}') as uncertain_held,
  coalesce((select jsonb_object_agg(unit, held::text) from holds), '{}') as held,
  (select count(*) from coatcheck.remote_jobs as job where job.role = 'orphan' and job.resolved_at is null) as orphan_count,
  coalesce((select age_s from renders), 0) as remote_render_age_s,
  coalesce((select jsonb_object_agg(cause, stale_count) from staleness), '{}') as stale_count,
  coalesce((select jsonb_object_agg(action, jsonb_build_object(
    'count', action_count, 'mean', round(total_ms::numeric / nullif(action_count, 0), 1), 'max', max_ms)) from durations), '{}') as action_ms,
  coalesce((select sum(lease_renewal_failures_count) from coatcheck.workers), 0)::bigint as lease_renewal_failures_count,
  (select count(*) from coatcheck.workers as known
    where known.stopped_at is null and known.seen_at > coatcheck.due_now() - make_interval(secs => %(seen_s)s::float8)) as worker_count
