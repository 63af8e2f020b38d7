-- purpose: the measures that tell a backlog's cause, in one pass over each table
-- guard: none: reading decides nothing
-- index: none for the outbox, which holds only what is unfinished; operations_pkey, dispatches_number, remote_jobs_orphans_idx
with clock as (
  select coatcheck.due_now() as at
),
lanes as materialized (
  select held.operation_id, held.lane, held.action, held.provider, held.account, held.wait_reason, held.parked_at, held.park_reason,
    extract(epoch from clock.at - held.visible_at)::float8 as due_for_s,
    extract(epoch from clock.at - held.last_leased_at)::float8 as leased_ago_s
  from coatcheck.outbox as held
  cross join clock
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
  select operation.operation_id, operation.account, operation.phase = 'uncertain' as is_uncertain,
    operation.dispatch_id = dispatch.dispatch_id as is_last,
    extract(epoch from clock.at - dispatch.begun_at)::float8 as age_s, dispatch.unit,
    case when dispatch.settled_at is null then dispatch.held else 0 end as held
  from lanes
  join coatcheck.operations as operation on operation.operation_id = lanes.operation_id
  join coatcheck.dispatches as dispatch on dispatch.operation_id = lanes.operation_id
  cross join clock
  where lanes.lane = 0 and lanes.action <> 'dispatch'
),
-- include: account_waits
-- where places become free and are taken again at once, it is the limit that is waited for
dispatched as (
  select sent.account
  from sent
  join coatcheck.accounts as budget using (account)
  where budget.in_flight_count * 2 >= budget.max_in_flight
  group by sent.account
  having min(sent.age_s) <= %(unclaimed_s)s::float8
),
-- a few groups of what is due, each of one name of an account; null: nobody made the name known that was asked for
due_lanes as materialized (
  select lanes.action, lanes.provider as asked, waits.provider, kind.is_look, lanes.action = 'observe' and lanes.leased_ago_s < waits.look_floor_s as is_early, count(*) as lane_count,
    count(*) filter (where lanes.due_for_s > %(unclaimed_s)s::float8) as overdue_count, max(lanes.due_for_s) as age_s
  from lanes
  left join account_waits as waits on waits.provider = lanes.provider and (lanes.account is null or lanes.account = waits.account)
  cross join lateral (select lanes.action = 'observe' or (lanes.action = 'reconcile' and lanes.wait_reason = 'lookup') as is_look) as kind
  where lanes.parked_at is null and lanes.due_for_s >= 0
  group by lanes.action, lanes.provider, waits.provider, kind.is_look, is_early
),
kept_lanes as materialized (
  select due_lanes.action, due_lanes.asked, due_lanes.is_look, due_lanes.lane_count, due_lanes.overdue_count, due_lanes.age_s, waits.account,
    case
      when due_lanes.is_look then coalesce(waits.look_wait, case when due_lanes.is_early then 'floor' end)
      when due_lanes.action = 'dispatch' then coalesce(waits.dispatch_wait, case when dispatched.account is not null then 'cap' end)
    end as account_wait
  from due_lanes
  left join account_waits as waits using (provider)
  left join dispatched using (account)
),
queues as (
  select action, sum(lane_count)::bigint as due_count, max(age_s) as age_s,
    coalesce(sum(overdue_count) filter (where account_wait is null), 0) as unclaimed_count
  from kept_lanes
  group by action
),
account_kept as (
  select account_wait, sum(lane_count)::bigint as lane_count
  from kept_lanes
  where account_wait is not null
  group by account_wait
),
-- each account with its budget, its pauses and what of it is due, in doubt or in flight
account_lanes as (
  select account, sum(lane_count) filter (where action = 'dispatch') as due_dispatch_count,
    sum(lane_count) filter (where is_look) as due_look_count, max(age_s) filter (where is_look) as look_age_s,
    min(account_wait) filter (where action = 'dispatch') as dispatch_wait,
    min(account_wait) filter (where is_look and account_wait <> 'floor') as look_wait
  from kept_lanes
  group by account
),
account_doubts as (
  select account, count(*) as uncertain_count
  from sent
  where is_uncertain and is_last
  group by account
),
-- a pause of dispatches is the same for every name of an account
account_names as (
  select account, jsonb_agg(name order by name) as providers, min(doubt_limit) as doubt_limit, max(doubt_count) as doubt_count,
    min(dispatch_paused_at) as dispatch_paused_at,
    (array_agg(dispatch_pause_reason order by dispatch_paused_at, name))[1] as dispatch_pause_reason,
    (array_agg(dispatch_paused_by order by dispatch_paused_at, name))[1] as dispatch_paused_by
  from coatcheck.providers
  group by account
),
account_measures as (
  select names.account, names.providers, budget.max_in_flight,
    case when budget.max_in_flight is not null then budget.in_flight_count end as in_flight_count,
    coalesce(doubts.uncertain_count, 0) as uncertain_count,
    budget.dispatches_per_s, case when budget.dispatch_shut_until > clock.at then budget.dispatch_shut_until end as dispatch_shut_until,
    names.dispatch_paused_at, names.dispatch_pause_reason, names.dispatch_paused_by, names.doubt_limit, names.doubt_count,
    budget.looks_per_s, budget.look_floor_s, case when budget.look_shut_until > clock.at then budget.look_shut_until end as look_shut_until,
    budget.observation_paused_at, budget.observation_pause_reason, budget.observation_paused_by, budget.observation_probe_at,
    coalesce(budget.failed_look_count, 0) as failed_look_count,
    coalesce(lanes.due_dispatch_count, 0) as due_dispatch_count, lanes.dispatch_wait,
    coalesce(lanes.due_look_count, 0) as due_look_count, lanes.look_wait, coalesce(lanes.look_age_s, 0) as look_age_s
  from account_names as names
  left join coatcheck.accounts as budget using (account)
  left join account_lanes as lanes using (account)
  left join account_doubts as doubts using (account)
  cross join clock
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
  coalesce((select jsonb_agg(distinct asked order by asked) from kept_lanes where account_wait is null and overdue_count > 0), '[]')
    as unclaimed_providers,
  coalesce((select jsonb_object_agg(wait_reason, lane_count) from waits), '{}') as waiting,
  coalesce((select jsonb_object_agg(account_wait, lane_count) from account_kept), '{}') as account_waits,
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
    where known.stopped_at is null and known.seen_at > coatcheck.due_now() - make_interval(secs => %(seen_s)s::float8)) as worker_count,
  coalesce((select jsonb_agg(to_jsonb(account_measures) order by account) from account_measures), '[]') as accounts
