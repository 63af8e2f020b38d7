-- purpose: a batch of decisions: a lease that ended in doubt, a deadline, what a person decided
-- guard: revision; a dispatch's outcome changes only where the decision itself applies
-- index: operations_pkey, dispatches_pkey, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(revision)s::bigint[], %(event)s::text[], %(phase)s::text[], %(render_state)s::text[],
      %(actor)s::text[], %(reason)s::text[], %(outcome)s::text[], %(authorises)s::boolean[], %(requests_cancel)s::boolean[],
      %(clears_withdrawal)s::boolean[], %(observe_for_s)s::float8[])
    as i(operation_id, revision, event, phase, render_state, actor, reason, outcome, authorises, requests_cancel,
      clears_withdrawal, observe_for_s)
),
locked as materialized (
  select held.operation_id, held.phase, held.render_state, held.delivery_state, held.dispatch_id, held.revision
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
judged as materialized (
  select input.*, 0::smallint as message_lane, locked.dispatch_id, locked.phase as from_phase,
    locked.render_state as from_render_state, locked.delivery_state as from_delivery_state,
    coalesce(locked.revision = input.revision, false) as applies
  from input
  left join locked using (operation_id)
),
open_dispatches as materialized (
  select held.dispatch_id, held.outcome
  from coatcheck.dispatches as held
  where held.dispatch_id in (select dispatch_id from judged where applies and outcome is not null)
  order by held.dispatch_id
  for no key update
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
    observe_by_at = case when judged.observe_for_s is null then stored.observe_by_at
      else coatcheck.lease_now() + make_interval(secs => judged.observe_for_s) end,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  where judged.applies and stored.operation_id = judged.operation_id
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.remote_job_id
),
-- include: lane_changes
-- include: lanes
-- include: chronicle
outcomes as (
  update coatcheck.dispatches as held set
    outcome = judged.outcome,
    cause = coalesce(held.cause, judged.reason)
  from open_dispatches
  join judged using (dispatch_id)
  where judged.applies and held.dispatch_id = open_dispatches.dispatch_id
    and coatcheck.outcome_rank(judged.outcome) > coatcheck.outcome_rank(open_dispatches.outcome)
)
select judged.operation_id, case when judged.applies then 'applied' else 'stale' end as status, written.revision
from judged
left join written using (operation_id)
