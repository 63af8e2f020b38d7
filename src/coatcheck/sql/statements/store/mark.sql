-- purpose: commit "may be sent from now on" for a batch of prepared operations
-- guard: revision, phase prepared, not withdrawn, due, account not paused, the server the last marks were made on, allowance, the account's budget; the unique index on the authorisation behind it
-- index: operations_pkey, accounts_pkey, allowances_pkey, dispatches_authorisation_idx, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(revision)s::bigint[], %(dispatch_id)s::uuid[], %(account)s::text[],
      %(send_s)s::float8[], %(quiescent_s)s::float8[], %(lease_s)s::float8[], %(pause_s)s::float8[])
    with ordinality as i(operation_id, revision, dispatch_id, account, send_s, quiescent_s, lease_s, pause_s, position)
),
locked as materialized (
  select held.operation_id, held.tenant_id, held.provider, held.phase, held.render_state, held.delivery_state, held.revision,
    held.estimate, held.unit, held.cancel_requested_at, held.not_before_at, held.dispatch_by_at
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
-- every name of the account: one that was configured after the pause is paused, too
accounts as materialized (
  select held.name, held.account, held.dispatch_paused_at, held.default_estimate, held.unit
  from coatcheck.providers as held
  where held.name in (select provider from locked) or held.account in (select account from input)
  order by held.name
  for share
),
-- on another server, or on a new timeline of this one, nothing is marked until that was noticed and a person resumed
astray as materialized (
  select held.only_row
  from coatcheck.installation as held
  cross join coatcheck.whereabouts() as here
  where (held.system_identifier, held.timeline, held.made_as)
    is distinct from (here.system_identifier, here.timeline, here.made_as)
),
-- all marks of an account with a budget wait here for one another
budgets as materialized (
  select held.account, held.max_in_flight - held.in_flight_count as free_count, held.dispatches_per_s, held.dispatch_turn_at,
    held.dispatch_shut_until
  from coatcheck.accounts as held
  where held.account in (select account from input) and (select count(*) from accounts) >= 0
    and (held.max_in_flight is not null or held.dispatches_per_s is not null or held.dispatch_shut_until > coatcheck.due_now())
  order by held.account
  for no key update
),
-- all of a tenant's marks wait here for one another, so that a limit is never passed
purses as materialized (
  select held.tenant_id, held.unit, held.ceiling, held.ceiling - held.held - held.charged as left_over
  from coatcheck.allowances as held
  where (held.tenant_id, held.unit) in (select tenant_id, unit from locked) and (select count(*) from budgets) >= 0
  order by held.tenant_id, held.unit
  for no key update
),
standing as materialized (
  select input.*, locked.tenant_id, locked.unit, locked.phase as from_phase, locked.render_state as from_render_state,
    locked.delivery_state as from_delivery_state,
    coalesce(locked.estimate, (
      select default_estimate from accounts where accounts.name = locked.provider and accounts.unit = locked.unit)) as amount,
    case
      when locked.operation_id is null or locked.phase <> 'prepared' or locked.revision <> input.revision
        -- asked after any wait for the lock: a deadline may have passed meanwhile
        or locked.cancel_requested_at is not null or locked.dispatch_by_at <= coatcheck.lease_now()
        or locked.not_before_at > coatcheck.lease_now() then 'stale'
      when exists (select from astray) or exists (
        select from accounts
        where (accounts.name = locked.provider or accounts.account = input.account) and accounts.dispatch_paused_at is not null)
        then 'paused'
      else 'applied' end as status
  from input
  left join locked using (operation_id)
),
-- in their order, until the first that does not fit: what is small does not for ever pass what is large
wanted as materialized (
  select operation_id, sum(amount) over (partition by tenant_id, unit order by position) as wanted
  from standing
  where status = 'applied'
),
affordable as materialized (
  select standing.operation_id, standing.dispatch_id, standing.account, standing.send_s, standing.quiescent_s, standing.lease_s,
    standing.pause_s, standing.tenant_id, standing.unit, standing.amount, 'dispatch_marked' as event, %(worker)s::text as actor,
    null::text as reason, 0::smallint as message_lane, standing.from_phase, standing.from_render_state,
    standing.from_delivery_state, standing.position,
    case
      -- a limit holds for what has no amount, too: there is nothing that could be held
      when standing.status = 'applied' and purses.ceiling is not null
        and (standing.amount is null or wanted.wanted > purses.left_over) then 'allowance'
      else standing.status end as status
  from standing
  left join wanted using (operation_id)
  left join purses on purses.tenant_id = standing.tenant_id and purses.unit = standing.unit
),
-- the first ones, as many as may be in flight and as the rate allows at this instant; `applies` beside the status: of a boolean
-- PostgreSQL expects half, of a word one row, and would compare each with each
judged as materialized (
  select turned.*, turned.status = 'applied' as applies
  from (
    select affordable.operation_id, affordable.dispatch_id, affordable.account, affordable.send_s, affordable.quiescent_s,
      affordable.lease_s, affordable.pause_s, affordable.tenant_id, affordable.unit, affordable.amount, affordable.event,
      affordable.actor, affordable.reason, affordable.message_lane, affordable.from_phase, affordable.from_render_state,
      affordable.from_delivery_state, turn.token_in_s,
      case
        when affordable.status = 'applied' and turn.number > budgets.free_count then 'cap'
        when affordable.status = 'applied' and turn.number > turn.token_count then 'rate'
        else affordable.status end as status
    from (
      select *, row_number() over (partition by account, status order by position)::integer as number
      from affordable) as affordable
    left join budgets using (account)
    cross join lateral (select coatcheck.lease_now() as at) as clock
    cross join lateral (select affordable.number,
      coatcheck.tokens(budgets.dispatches_per_s, budgets.dispatch_turn_at, budgets.dispatch_shut_until, clock.at) as token_count,
      coatcheck.token_in_s(budgets.dispatches_per_s, budgets.dispatch_turn_at, budgets.dispatch_shut_until, clock.at,
        affordable.number) as token_in_s) as turn) as turned
),
budgets_spent as (
  update coatcheck.accounts as kept set
    in_flight_count = kept.in_flight_count + case when kept.max_in_flight is null then 0 else spent.mark_count end,
    dispatch_turn_at = case when kept.dispatches_per_s is null then kept.dispatch_turn_at
      else greatest(kept.dispatch_turn_at, coatcheck.lease_now()) + make_interval(secs => spent.mark_count / kept.dispatches_per_s) end
  from budgets
  join (select account, count(*)::integer as mark_count from judged where applies group by account) as spent using (account)
  where kept.account = budgets.account
),
amounts as (
  select tenant_id, unit, amount as held, 0::numeric as charged
  from judged
  where applies and amount <> 0
),
-- include: allowances
written as (
  update coatcheck.operations as stored set
    phase = 'dispatching',
    dispatch_id = judged.dispatch_id,
    dispatch_count = stored.dispatch_count + 1,
    account = judged.account,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  where judged.applies and stored.operation_id = judged.operation_id
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.authorisation, stored.authorised_by, stored.dispatch_count, stored.unit,
    stored.tenant_id, stored.priority
),
marks as (
  insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at,
    send_by_at, quiescent_at, held, unit)
  select judged.dispatch_id, written.operation_id, written.dispatch_count, written.authorisation, written.authorised_by,
    written.account, %(worker)s::text, clock.at, clock.at + make_interval(secs => judged.send_s),
    clock.at + make_interval(secs => judged.quiescent_s), coalesce(judged.amount, 0), written.unit
  from written
  join judged using (operation_id)
  cross join lateral (select coatcheck.lease_now() as at) as clock
),
lane_locks as materialized (
  select held.operation_id, held.lane, held.action, held.lease_count, held.leased_at
  from coatcheck.outbox as held
  -- as one row: of a number alone PostgreSQL expects one lane in a table that it knows nothing of, and would compare each with each
  where (held.operation_id, held.lane) in (
    select operation_id, 0::smallint from written
    union all select operation_id, 0::smallint from judged where status in ('paused', 'allowance', 'cap', 'rate'))
    -- allowances are locked before lanes, as everywhere
    and (select count(*) from allowance_locks) >= 0
  order by held.operation_id
  for no key update
),
-- include: chronicle
-- where this lease ends, doubt begins: the lane is aimed at reconciliation, which any worker may do
lanes_taken as (
  insert into coatcheck.outbox as held (operation_id, lane, action, provider, account, expected_revision, visible_at, leased_by,
    leased_at, tenant_id, precedence)
  select written.operation_id, 0, 'reconcile', written.provider, written.account, written.revision,
    clock.at + make_interval(secs => judged.lease_s), %(worker)s::text, clock.at, written.tenant_id, -written.priority
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
lanes_waiting as (
  update coatcheck.outbox as held set
    -- a rate says when the turn comes; what else is waited for is asked about less and less often
    visible_at = coatcheck.lease_now() + make_interval(secs => case
      when reasons.reason = 'rate' then judged.token_in_s
      -- only who raced for the last place is refused it, and another may be free in a moment
      when reasons.reason = 'cap' then judged.pause_s / 5
      when held.wait_reason = reasons.reason then judged.pause_s * least(1 + held.wait_count, 4)
      else judged.pause_s end),
    lease_token = nextval('coatcheck.lease_tokens'),
    lease_count = 0,
    leased_by = null,
    leased_at = null,
    wait_reason = reasons.reason,
    wait_since_at = case when held.wait_reason = reasons.reason then held.wait_since_at else coatcheck.lease_now() end,
    wait_count = case when held.wait_reason = reasons.reason then held.wait_count + 1 else 1 end
  from judged
  join lane_locks using (operation_id)
  join (values ('paused', 'pause'), ('allowance', 'allowance'), ('cap', 'cap'), ('rate', 'rate')) as reasons(status, reason) using (status)
  where held.operation_id = judged.operation_id and held.lane = 0 and held.action = 'dispatch'
)
select judged.operation_id, judged.status, written.revision, lanes_taken.lease_token, coalesce(judged.amount, 0) as held, judged.unit
from judged
left join written using (operation_id)
left join lanes_taken using (operation_id)
