-- purpose: commit "may be sent from now on" for a batch of prepared operations
-- guard: revision, phase prepared, not withdrawn, due, account not paused; the unique index on the authorisation behind it
-- index: operations_pkey, dispatches_authorisation_idx, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(revision)s::bigint[], %(dispatch_id)s::uuid[], %(account)s::text[],
      %(send_s)s::float8[], %(quiescent_s)s::float8[], %(lease_s)s::float8[], %(pause_s)s::float8[])
    as i(operation_id, revision, dispatch_id, account, send_s, quiescent_s, lease_s, pause_s)
),
locked as materialized (
  select held.operation_id, held.provider, held.phase, held.render_state, held.delivery_state, held.revision,
    held.cancel_requested_at, held.not_before_at, held.dispatch_by_at
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
-- every name of the account: one that was configured after the pause is paused, too
accounts as materialized (
  select held.name, held.account, held.dispatch_paused_at
  from coatcheck.providers as held
  where held.name in (select provider from locked) or held.account in (select account from input)
  order by held.name
  for share
),
judged as materialized (
  select input.*, 'dispatch_marked' as event, %(worker)s::text as actor, null::text as reason, 0::smallint as message_lane,
    locked.phase as from_phase, locked.render_state as from_render_state, locked.delivery_state as from_delivery_state,
    case
      when locked.operation_id is null or locked.phase <> 'prepared' or locked.revision <> input.revision
        -- asked after any wait for the lock: a deadline may have passed meanwhile
        or locked.cancel_requested_at is not null or locked.dispatch_by_at <= coatcheck.lease_now()
        or locked.not_before_at > coatcheck.lease_now() then 'stale'
      when exists (
        select from accounts
        where (accounts.name = locked.provider or accounts.account = input.account) and accounts.dispatch_paused_at is not null)
        then 'paused'
      else 'applied' end as status
  from input
  left join locked using (operation_id)
),
written as (
  update coatcheck.operations as stored set
    phase = 'dispatching',
    dispatch_id = judged.dispatch_id,
    dispatch_count = stored.dispatch_count + 1,
    account = judged.account,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  where judged.status = 'applied' and stored.operation_id = judged.operation_id
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.authorisation, stored.authorised_by, stored.dispatch_count, stored.estimate, stored.unit
),
marks as (
  insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at,
    send_by_at, quiescent_at, held, unit)
  select judged.dispatch_id, written.operation_id, written.dispatch_count, written.authorisation, written.authorised_by,
    written.account, %(worker)s::text, clock.at, clock.at + make_interval(secs => judged.send_s),
    clock.at + make_interval(secs => judged.quiescent_s), coalesce(written.estimate, 0), written.unit
  from written
  join judged using (operation_id)
  cross join lateral (select coatcheck.lease_now() as at) as clock
),
lane_locks as materialized (
  select held.operation_id, held.lane, held.action, held.lease_count, held.leased_at
  from coatcheck.outbox as held
  where held.lane = 0 and held.operation_id in (
    select operation_id from written union all select operation_id from judged where status = 'paused')
  order by held.operation_id
  for no key update
),
-- include: chronicle
-- where this lease ends, doubt begins: the lane is aimed at reconciliation, which any worker may do
lanes_taken as (
  insert into coatcheck.outbox as held (operation_id, lane, action, provider, account, expected_revision, visible_at, leased_by,
    leased_at)
  select written.operation_id, 0, 'reconcile', written.provider, written.account, written.revision,
    clock.at + make_interval(secs => judged.lease_s), %(worker)s::text, clock.at
  from written
  join judged using (operation_id)
  cross join lateral (select coatcheck.lease_now() as at where (select count(*) from lane_locks) >= 0) as clock
  order by written.operation_id
  on conflict (operation_id, lane) do update set
    action = excluded.action,
    account = excluded.account,
    expected_revision = excluded.expected_revision,
    visible_at = excluded.visible_at,
    lease_token = nextval('coatcheck.lease_tokens'),
    lease_count = 0,
    leased_by = excluded.leased_by,
    leased_at = excluded.leased_at,
    parked_at = null,
    park_reason = null
  returning held.operation_id, held.lease_token
),
lanes_paused as (
  update coatcheck.outbox as held set
    visible_at = coatcheck.lease_now() + make_interval(secs => judged.pause_s),
    lease_token = nextval('coatcheck.lease_tokens'),
    lease_count = 0,
    leased_by = null,
    leased_at = null,
    wait_reason = 'pause',
    wait_since_at = case when held.wait_reason = 'pause' then held.wait_since_at else coatcheck.lease_now() end,
    wait_count = case when held.wait_reason = 'pause' then held.wait_count + 1 else 1 end
  from judged
  join lane_locks using (operation_id)
  where judged.status = 'paused' and held.operation_id = judged.operation_id and held.lane = 0 and held.action = 'dispatch'
)
select judged.operation_id, judged.status, written.revision, lanes_taken.lease_token
from judged
left join written using (operation_id)
left join lanes_taken using (operation_id)
