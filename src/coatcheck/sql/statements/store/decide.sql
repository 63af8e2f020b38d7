-- purpose: a batch of decisions: a lease that ended in doubt, a deadline, what a person decided
-- guard: revision, and for an adopted id that no other operation has it; a dispatch changes only where the decision itself applies
-- index: operations_pkey, dispatches_pkey, remote_jobs_pkey, allowances_pkey, deliveries_pkey, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(revision)s::bigint[], %(event)s::text[], %(phase)s::text[], %(render_state)s::text[],
      %(actor)s::text[], %(reason)s::text[], %(outcome)s::text[], %(settles)s::text[], %(authorises)s::boolean[],
      %(requests_cancel)s::boolean[], %(clears_withdrawal)s::boolean[], %(remote_job_id)s::text[], %(observe_for_s)s::float8[])
    as i(operation_id, revision, event, phase, render_state, actor, reason, outcome, settles, authorises, requests_cancel,
      clears_withdrawal, remote_job_id, observe_for_s)
),
locked as materialized (
  select held.operation_id, held.tenant_id, held.phase, held.render_state, held.delivery_state, held.account, held.dispatch_id,
    held.revision
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
guarded as materialized (
  select input.*, 0::smallint as message_lane, locked.dispatch_id, locked.tenant_id, locked.account, locked.phase as from_phase,
    locked.render_state as from_render_state, locked.delivery_state as from_delivery_state,
    coalesce(locked.revision = input.revision, false) as is_current
  from input
  left join locked using (operation_id)
),
jobs_claimed as (
  insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
  select account, remote_job_id, operation_id, dispatch_id, 'owner', coatcheck.lease_now()
  from guarded
  where is_current and remote_job_id is not null
  order by account, remote_job_id
  on conflict do nothing
  returning account, remote_job_id, operation_id
),
jobs_promoted as (
  update coatcheck.remote_jobs as held set role = 'owner', dispatch_id = guarded.dispatch_id
  from guarded
  where guarded.is_current and held.account = guarded.account and held.remote_job_id = guarded.remote_job_id
    and held.operation_id = guarded.operation_id and held.role = 'orphan'
    and not exists (select from jobs_claimed as won where won.account = held.account and won.remote_job_id = held.remote_job_id)
  returning held.account, held.remote_job_id, held.operation_id
),
judged as materialized (
  select guarded.*,
    case
      when not is_current then 'stale'
      when remote_job_id is null or exists (
        select
        from (select account, remote_job_id, operation_id from jobs_claimed
          union all select account, remote_job_id, operation_id from jobs_promoted) as won
        where won.account = guarded.account and won.remote_job_id = guarded.remote_job_id
          and won.operation_id = guarded.operation_id) then 'applied'
      when exists (
        select from coatcheck.remote_jobs as held
        where held.account = guarded.account and held.remote_job_id = guarded.remote_job_id
          and held.operation_id <> guarded.operation_id) then 'owned'
      -- the owner's row was committed after this statement's snapshot: once more
      else 'stale' end as status
  from guarded
),
open_dispatches as materialized (
  select held.dispatch_id, held.outcome, held.held, held.charged, held.unit, held.settled_at
  from coatcheck.dispatches as held
  where held.dispatch_id in (
    select dispatch_id from judged where status = 'applied' and (outcome is not null or settles is not null))
  order by held.dispatch_id
  for no key update
),
-- what is settled already stays: a decision spends nothing twice; an id that concludes re-opens it: the hold is taken again
money as materialized (
  select judged.tenant_id, open_dispatches.dispatch_id, open_dispatches.unit, open_dispatches.held, open_dispatches.charged as was_charged,
    judged.remote_job_id is not null as reopens,
    case when judged.remote_job_id is not null then null when judged.settles = 'spent' then open_dispatches.held else 0 end as charged_now
  from open_dispatches
  join judged using (dispatch_id)
  where judged.status = 'applied' and case when judged.remote_job_id is not null then open_dispatches.settled_at is not null
    else judged.settles is not null and open_dispatches.settled_at is null end
),
amounts as (
  select tenant_id, unit, case when reopens then held else -held end as held, coalesce(charged_now, 0) - coalesce(was_charged, 0) as charged
  from money
),
-- include: allowances
redelivered as (
  update coatcheck.deliveries as held set state = 'pending', cause = null, updated_at = coatcheck.lease_now()
  from unnest(%(redeliver_operation_id)s::uuid[], %(redeliver_index)s::smallint[]) as again(operation_id, output_index)
  join judged using (operation_id)
  where judged.status = 'applied' and held.operation_id = again.operation_id and held.output_index = again.output_index
    and held.state = 'failed'
  returning held.operation_id
),
written as (
  update coatcheck.operations as stored set
    phase = judged.phase,
    render_state = judged.render_state,
    authorisation = stored.authorisation + judged.authorises::integer,
    authorised_by = case when judged.authorises then judged.actor else stored.authorised_by end,
    cancel_requested_at = case
      when judged.clears_withdrawal then null
      when judged.requests_cancel then coalesce(stored.cancel_requested_at, coatcheck.lease_now())
      else stored.cancel_requested_at end,
    dispatch_by_at = case when judged.clears_withdrawal then null else stored.dispatch_by_at end,
    remote_job_id = coalesce(stored.remote_job_id, judged.remote_job_id),
    accepted_at = case when judged.remote_job_id is null then stored.accepted_at else coatcheck.lease_now() end,
    observe_by_at = case when judged.observe_for_s is null then stored.observe_by_at
      else coatcheck.lease_now() + make_interval(secs => judged.observe_for_s) end,
    failed_count = stored.failed_count - again.outputs,
    delivery_state = case when again.outputs > 0 then 'pending' else stored.delivery_state end,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  cross join lateral (
    select count(*)::integer as outputs from redelivered where redelivered.operation_id = judged.operation_id) as again
  -- allowances are locked before lanes, as everywhere
  where judged.status = 'applied' and stored.operation_id = judged.operation_id and (select count(*) from allowance_locks) >= 0
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.remote_job_id
),
-- include: lane_changes
-- include: lanes
-- include: chronicle
outcomes as (
  update coatcheck.dispatches as held set
    outcome = case when judged.outcome is null
        or coatcheck.outcome_rank(judged.outcome) <= coatcheck.outcome_rank(open_dispatches.outcome) then held.outcome
      else judged.outcome end,
    cause = coalesce(held.cause, judged.reason),
    remote_job_id = coalesce(held.remote_job_id, judged.remote_job_id),
    charged = case when money.dispatch_id is null then held.charged else money.charged_now end,
    basis = case when money.dispatch_id is null then held.basis when not money.reopens then 'assumed' end,
    settled_at = case when money.dispatch_id is null then held.settled_at when not money.reopens then coatcheck.lease_now() end
  from open_dispatches
  join judged using (dispatch_id)
  left join money using (dispatch_id)
  where judged.status = 'applied' and held.dispatch_id = open_dispatches.dispatch_id
)
select judged.operation_id, judged.status, written.revision
from judged
left join written using (operation_id)
