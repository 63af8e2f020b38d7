-- purpose: a batch of decisions: a lease that ended in doubt, a deadline, what a person decided
-- guard: revision, and for an adopted id that no other operation has it; a dispatch changes only where the decision itself applies
-- index: operations_pkey, dispatches_pkey, remote_jobs_pkey, allowances_pkey, deliveries_pkey, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(revision)s::bigint[], %(event)s::text[], %(phase)s::text[], %(render_state)s::text[],
      %(actor)s::text[], %(reason)s::text[], %(outcome)s::text[], %(settles)s::text[], %(authorises)s::boolean[],
      %(requests_cancel)s::boolean[], %(cancel_answer)s::text[], %(clears_withdrawal)s::boolean[], %(remote_job_id)s::text[],
      %(observe_for_s)s::float8[])
    as i(operation_id, revision, event, phase, render_state, actor, reason, outcome, settles, authorises, requests_cancel,
      cancel_answer, clears_withdrawal, remote_job_id, observe_for_s)
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
  returning account, remote_job_id, operation_id, dispatch_id
),
-- an orphan of this operation was named by a reply to one of its dispatches, and goes on belonging to that one
jobs_promoted as (
  update coatcheck.remote_jobs as held set
    role = 'owner',
    dispatch_id = coalesce(held.dispatch_id, guarded.dispatch_id),
    resolved_at = null,
    resolved_by = null,
    resolution = null
  from guarded
  where guarded.is_current and held.account = guarded.account and held.remote_job_id = guarded.remote_job_id
    and held.operation_id = guarded.operation_id and held.role = 'orphan'
    and not exists (select from jobs_claimed as won where won.account = held.account and won.remote_job_id = held.remote_job_id)
  returning held.account, held.remote_job_id, held.operation_id, held.dispatch_id
),
-- `applies` beside its status: of a boolean PostgreSQL expects half, of a word one row, and would compare each with each
judged as materialized (
  select ruled.*, ruled.status = 'applied' as applies
  from (
    select guarded.operation_id, guarded.event, guarded.phase, guarded.render_state, guarded.actor, guarded.reason, guarded.outcome,
      guarded.settles, guarded.authorises, guarded.requests_cancel, guarded.cancel_answer, guarded.clears_withdrawal,
      guarded.remote_job_id, guarded.observe_for_s, guarded.message_lane, guarded.tenant_id, guarded.account, guarded.from_phase,
      guarded.from_render_state, guarded.from_delivery_state, guarded.dispatch_id as present_dispatch_id,
      coalesce(won.dispatch_id, guarded.dispatch_id) as dispatch_id,
      case
        when not is_current then 'stale'
        when guarded.remote_job_id is null or won.operation_id is not null then 'applied'
        when exists (
          select from coatcheck.remote_jobs as held
          where held.account = guarded.account and held.remote_job_id = guarded.remote_job_id
            and held.operation_id <> guarded.operation_id) then 'owned'
        -- the owner's row was committed after this statement's snapshot: once more
        else 'stale' end as status
    from guarded
    left join (
      select account, remote_job_id, operation_id, dispatch_id from jobs_claimed
      union all select account, remote_job_id, operation_id, dispatch_id from jobs_promoted) as won
      on won.account = guarded.account and won.remote_job_id = guarded.remote_job_id and won.operation_id = guarded.operation_id) as ruled
),
-- an id that concludes opens its dispatch; if that is an earlier one, the present dispatch bought something that nobody has
verdicts as materialized (
  select operation_id, tenant_id, dispatch_id, outcome, reason, remote_job_id,
    case when remote_job_id is not null then 'open' else settles end as verdict
  from judged
  where applies and (outcome is not null or settles is not null)
  union all
  select operation_id, tenant_id, present_dispatch_id, null, reason, null, 'spent'
  from judged
  where applies and present_dispatch_id <> dispatch_id
),
open_dispatches as materialized (
  select held.dispatch_id, held.outcome, held.held, held.charged, held.orphaned, held.unit, held.settled_at
  from coatcheck.dispatches as held
  where held.dispatch_id in (select dispatch_id from verdicts)
  order by held.dispatch_id
  for no key update
),
-- what is settled already stays, so that nothing is spent twice; what is opened holds again
money as materialized (
  select verdicts.operation_id, verdicts.tenant_id, verdicts.verdict, open_dispatches.dispatch_id, open_dispatches.unit, open_dispatches.held,
    open_dispatches.charged as was_charged,
    case verdicts.verdict when 'spent' then open_dispatches.held when 'free' then 0 end + open_dispatches.orphaned as charged_now
  from open_dispatches
  join verdicts using (dispatch_id)
  where (verdicts.verdict = 'open') = (open_dispatches.settled_at is not null) and verdicts.verdict is not null
),
account_news as (
  select account, null::float8 as shut_s,
    coatcheck.is_in_flight(phase, render_state)::integer - coatcheck.is_in_flight(from_phase, from_render_state)::integer as flights
  from judged
  where applies
),
-- include: account_news
amounts as (
  select tenant_id, unit, case when verdict = 'open' then held else -held end as held,
    coalesce(charged_now, 0) - coalesce(was_charged, 0) as charged
  from money
  -- accounts are locked before allowances, as everywhere
  where (select count(*) from account_locks) >= 0
),
-- include: allowances
redelivered as (
  update coatcheck.deliveries as held set state = 'pending', cause = null, updated_at = coatcheck.lease_now()
  from unnest(%(redeliver_operation_id)s::uuid[], %(redeliver_index)s::smallint[]) as again(operation_id, output_index)
  join judged using (operation_id)
  where judged.applies and held.operation_id = again.operation_id and held.output_index = again.output_index
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
    -- whoever asks again is passed on again
    cancel_answer = case when judged.clears_withdrawal or judged.requests_cancel then null
      else coalesce(judged.cancel_answer, stored.cancel_answer) end,
    dispatch_by_at = case when judged.clears_withdrawal then null else stored.dispatch_by_at end,
    dispatch_id = coalesce(judged.dispatch_id, stored.dispatch_id),
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
  where judged.applies and stored.operation_id = judged.operation_id and (select count(*) from allowance_locks) >= 0
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.remote_job_id, stored.tenant_id, stored.priority, stored.dispatch_by_at
),
-- include: lane_changes
-- include: lanes
-- include: chronicle
-- a look that is being made is left alone: it finds the newer revision, and is made again
looks as (
  update coatcheck.outbox as held set
    visible_at = coatcheck.lease_now(),
    lease_token = nextval('coatcheck.lease_tokens'),
    lease_count = case change.verb when 'look' then held.lease_count else 0 end,
    last_error = case change.verb when 'look' then held.last_error end,
    expected_revision = written.revision,
    parked_at = null,
    park_reason = null
  from written
  join lane_changes as change on change.operation_id = written.operation_id and change.looks
  join lane_locks on lane_locks.operation_id = written.operation_id and lane_locks.lane = 0
  where held.operation_id = written.operation_id and held.lane = 0 and held.action = 'observe' and held.leased_by is null
    and (held.parked_at is null or change.verb = 'look_again')
),
outcomes as (
  update coatcheck.dispatches as held set
    outcome = case when verdicts.outcome is null
        or coatcheck.outcome_rank(verdicts.outcome) <= coatcheck.outcome_rank(open_dispatches.outcome) then held.outcome
      else verdicts.outcome end,
    -- what ended the exchange in a word of ours: a person's reason stands in the history
    cause = coalesce(held.cause, case when verdicts.outcome = 'uncertain' then verdicts.reason end),
    remote_job_id = coalesce(held.remote_job_id, verdicts.remote_job_id),
    charged = case when money.dispatch_id is null then held.charged else money.charged_now end,
    basis = case when money.dispatch_id is null then held.basis when money.verdict = 'open' then null else 'assumed' end,
    settled_at = case when money.dispatch_id is null then held.settled_at when money.verdict = 'open' then null
      else coatcheck.lease_now() end
  from open_dispatches
  join verdicts using (dispatch_id)
  left join money using (dispatch_id)
  where held.dispatch_id = open_dispatches.dispatch_id
)
select judged.operation_id, judged.status, written.revision, moved.spent, moved.released
from judged
left join written using (operation_id)
left join (
  select operation_id, sum(charged_now) filter (where verdict = 'spent') as spent,
    sum(held - charged_now) filter (where verdict = 'free') as released
  from money
  group by operation_id) as moved using (operation_id)
