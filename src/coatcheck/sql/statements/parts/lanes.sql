-- purpose: the lanes of the operations in `written`, locked in order, then dropped, aimed or parked; shared by every saving statement
-- guard: only operations that this statement wrote; whoever wins the operation writes its lanes, whatever their lease
-- index: outbox_pkey
lane_locks as materialized (
  select held.operation_id, held.lane, held.action, held.lease_count, held.leased_at
  from coatcheck.outbox as held
  where held.operation_id in (select operation_id from written)
  order by held.operation_id, held.lane
  for no key update
),
lanes_dropped as (
  delete from coatcheck.outbox as gone
  using lane_changes as change, lane_locks as held
  where change.drops
    and held.operation_id = change.operation_id
    and (change.verb = 'drop_all' or held.lane = change.lane)
    and gone.operation_id = held.operation_id
    and gone.lane = held.lane
),
lanes_aimed as (
  insert into coatcheck.outbox as held (operation_id, lane, action, provider, account, expected_revision, expected_remote_job_id,
    visible_at, wait_reason, wait_since_at, wait_count, parked_at, park_reason, tenant_id, precedence,
    dispatch_by_at)
  select written.operation_id, change.lane, change.action, written.provider, written.account, written.revision,
    written.remote_job_id, clock.at + make_interval(secs => coalesce(change.delay_s, 0)),
    case when change.verb = 'aim' then change.reason end,
    case when change.verb = 'aim' and change.reason is not null then clock.at end,
    case when change.verb = 'aim' and change.reason is not null then 1 else 0 end,
    case when change.verb = 'park' then clock.at end,
    case when change.verb = 'park' then change.reason end, written.tenant_id, -written.priority,
    written.dispatch_by_at
  from lane_changes as change
  join written using (operation_id)
  cross join lateral (select coatcheck.lease_now() as at where (select count(*) from lane_locks) >= 0) as clock
  where change.aims
  order by written.operation_id, change.lane
  on conflict (operation_id, lane) do update set
    action = excluded.action,
    account = excluded.account,
    expected_revision = excluded.expected_revision,
    expected_remote_job_id = excluded.expected_remote_job_id,
    visible_at = excluded.visible_at,
    lease_token = nextval('coatcheck.lease_tokens'),
    lease_count = 0,
    leased_by = null,
    leased_at = null,
    last_error = null,
    dispatch_by_at = excluded.dispatch_by_at,
    wait_reason = excluded.wait_reason,
    wait_since_at = case when held.wait_reason = excluded.wait_reason then held.wait_since_at else excluded.wait_since_at end,
    wait_count = case when held.wait_reason = excluded.wait_reason then held.wait_count + 1 else excluded.wait_count end,
    parked_at = excluded.parked_at,
    park_reason = excluded.park_reason
),
