-- purpose: a person dealt with an orphan; what the service says that it cost corrects the charge of its dispatch, in any phase
-- guard: the row is an orphan and not resolved, and the revision where one is named; all judged under the operation's lock
-- index: remote_jobs_pkey, operations_pkey, dispatches_pkey, allowances_pkey
with input as materialized (
  select %(account)s::text as account, %(remote_job_id)s::text as remote_job_id, %(charged)s::numeric as charged,
    %(revision)s::bigint as revision, %(actor)s::text as actor, %(reason)s::text as reason
),
locked as materialized (
  select held.operation_id, held.tenant_id, held.phase, held.render_state, held.delivery_state, held.revision
  from coatcheck.operations as held
  where held.operation_id in (
    select job.operation_id from coatcheck.remote_jobs as job join input using (account, remote_job_id))
  order by held.operation_id
  for no key update
),
orphans as materialized (
  select held.operation_id, held.dispatch_id, held.role, held.resolved_at, held.resolved_by, held.resolution
  from coatcheck.remote_jobs as held
  join input using (account, remote_job_id)
  where (select count(*) from locked) >= 0
  for no key update of held
),
known_dispatches as materialized (
  select held.dispatch_id, held.remote_job_id, held.held, held.charged, held.orphaned, held.basis, held.unit, held.settled_at
  from coatcheck.dispatches as held
  where held.dispatch_id in (select dispatch_id from orphans)
  order by held.dispatch_id
  for no key update
),
judged as materialized (
  select orphans.operation_id, orphans.dispatch_id, orphans.resolved_at, orphans.resolved_by, orphans.resolution,
    input.account, input.remote_job_id, input.charged, input.actor, input.reason, 'orphan_resolved' as event,
    0::smallint as message_lane, locked.tenant_id, locked.revision, locked.phase as from_phase,
    locked.render_state as from_render_state, locked.delivery_state as from_delivery_state,
    case
      when orphans.role <> 'orphan' then 'owned'
      when orphans.resolved_at is not null then 'resolved'
      when input.revision is not null and locked.revision is distinct from input.revision then 'stale'
      when input.charged is not null and known_dispatches.dispatch_id is null then 'other_charge'
      else 'applied' end as status
  from orphans
  cross join input
  left join locked using (operation_id)
  left join known_dispatches using (dispatch_id)
),
money as materialized (
  select judged.tenant_id, known_dispatches.dispatch_id, known_dispatches.unit, known_dispatches.held,
    known_dispatches.charged as was_charged, known_dispatches.settled_at, owned.is_own,
    known_dispatches.orphaned + case when owned.is_own then 0 else judged.charged end as orphaned,
    -- the dispatch's own job settles it; another job of the same POST is added, now or once the dispatch is settled
    case when owned.is_own then judged.charged + known_dispatches.orphaned else known_dispatches.charged + judged.charged end as charged,
    case when owned.is_own then 'service' else known_dispatches.basis end as basis
  from judged
  join known_dispatches using (dispatch_id)
  cross join lateral (select known_dispatches.remote_job_id is not distinct from judged.remote_job_id as is_own) as owned
  where judged.status = 'applied' and judged.charged is not null
),
amounts as (
  select tenant_id, unit, case when is_own and settled_at is null then -held else 0 end as held,
    coalesce(charged, 0) - coalesce(was_charged, 0) as charged
  from money
  where tenant_id is not null
),
-- include: allowances
written as (
  update coatcheck.operations as stored set
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  -- allowances are locked before lanes, as everywhere
  where judged.status = 'applied' and stored.operation_id = judged.operation_id and (select count(*) from allowance_locks) >= 0
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state
),
lane_locks as (
  -- no message led here
  select null::uuid as operation_id, null::smallint as lane, null::text as action, null::integer as lease_count,
    null::timestamptz as leased_at
  where false
),
-- include: chronicle
corrected as (
  update coatcheck.dispatches as held set
    orphaned = money.orphaned,
    charged = money.charged,
    basis = money.basis,
    settled_at = case when money.is_own then coalesce(held.settled_at, coatcheck.lease_now()) else held.settled_at end
  from money
  where held.dispatch_id = money.dispatch_id
),
resolved as (
  update coatcheck.remote_jobs as held set
    resolved_at = coatcheck.lease_now(),
    resolved_by = judged.actor,
    resolution = judged.reason
  from judged
  where judged.status = 'applied' and held.account = judged.account and held.remote_job_id = judged.remote_job_id
  returning held.resolved_at
)
select judged.status, judged.operation_id, coalesce(written.revision, judged.revision) as revision, judged.from_phase as phase,
  coalesce(resolved.resolved_at, judged.resolved_at) as resolved_at, judged.resolved_by, judged.resolution
from judged
left join written using (operation_id)
left join resolved on true
