-- purpose: how much each account and each wanted kind has leave for at this instant
-- guard: accounts whose looks are counted, or tried with one, are locked before any message; what is not locked gets none of them
-- index: accounts_pkey, outbox_due_idx, outbox_doubt_idx
counted as materialized (
  select held.account, held.max_in_flight, held.in_flight_count, held.dispatches_per_s, held.dispatch_turn_at,
    held.dispatch_shut_until, held.looks_per_s, held.look_turn_at, held.look_shut_until, held.look_floor_s,
    held.observation_paused_at, held.observation_probe_at, held.failed_look_count
  from coatcheck.accounts as held
  where held.account in (
      select account from wanted where action = 'observe' and room > 0 union all select account from configured)
    and (held.looks_per_s is not null or held.observation_probe_at <= coatcheck.due_now())
    -- an account that nobody is about to look at is left alone
    and (exists (
        select
        from wanted
        join coatcheck.outbox as due on due.provider = wanted.provider and due.action = wanted.action
        where wanted.account = held.account and wanted.action = 'observe' and due.action <> 'reconcile' and due.parked_at is null
          and due.visible_at <= coatcheck.due_now())
      or exists (
        select
        from configured
        join coatcheck.outbox as due on due.provider = configured.provider
        where configured.account = held.account and due.action = 'reconcile' and due.parked_at is null
          and due.wait_reason = 'lookup' and due.visible_at <= coatcheck.due_now()))
  order by held.account
  for no key update of held
),
known as (
  select account, max_in_flight, in_flight_count, dispatches_per_s, dispatch_turn_at, dispatch_shut_until, looks_per_s,
    look_turn_at, look_shut_until, look_floor_s, observation_paused_at, observation_probe_at, failed_look_count, true as
    is_counted
  from counted
  union all
  select held.account, held.max_in_flight, held.in_flight_count, held.dispatches_per_s, held.dispatch_turn_at,
    held.dispatch_shut_until, held.looks_per_s, held.look_turn_at, held.look_shut_until, held.look_floor_s,
    held.observation_paused_at, held.observation_probe_at, held.failed_look_count, false
  from coatcheck.accounts as held
  where held.account in (select account from wanted union all select account from configured)
    and not exists (select from counted where counted.account = held.account)
),
budgets as materialized (
  select known.account, known.look_floor_s, known.looks_per_s, known.dispatches_per_s, known.failed_look_count,
    known.observation_paused_at is not null as is_paused,
    least(greatest(known.max_in_flight - known.in_flight_count, case when known.max_in_flight is not null then 0 end),
      coatcheck.tokens(known.dispatches_per_s, known.dispatch_turn_at, known.dispatch_shut_until, clock.at)) as dispatch_leave,
    case
      -- a pause is tried with one look, which keeps to the rate and to the patience that was asked for
      when known.observation_paused_at is not null and coalesce(known.observation_probe_at > clock.at, true) then 0
      when known.observation_paused_at is not null then known.is_counted::integer * least(1,
        coatcheck.tokens(known.looks_per_s, known.look_turn_at, known.look_shut_until, clock.at))
      when known.looks_per_s is not null and not known.is_counted then 0
      else coatcheck.tokens(known.looks_per_s, known.look_turn_at, known.look_shut_until, clock.at) end as look_leave,
    -- whose places in flight are taken opens when a render ends, which nobody knows
    case when (known.in_flight_count < known.max_in_flight) is not false
        and (known.dispatches_per_s is not null or known.dispatch_shut_until > clock.at)
      then coatcheck.token_in_s(known.dispatches_per_s, known.dispatch_turn_at, known.dispatch_shut_until, clock.at,
        greatest(1, floor(known.dispatches_per_s / 10))::integer) end as dispatch_in_s,
    case
      when known.observation_paused_at is not null then extract(
        epoch from greatest(known.observation_probe_at - clock.at,
          case when known.observation_probe_at is not null then known.look_shut_until - clock.at end))::float8
      -- nothing is due for it, so nothing waits for it to open
      when known.looks_per_s is not null and not known.is_counted then null
      else coatcheck.token_in_s(known.looks_per_s, known.look_turn_at, known.look_shut_until, clock.at,
        greatest(1, floor(known.looks_per_s / 10))::integer) end as look_in_s
  from known
  cross join lateral (select coatcheck.lease_now() as at where (select count(*) from counted) >= 0) as clock
),
allowed as materialized (
  select wanted.action, wanted.provider, wanted.account, wanted.room, wanted.reserve, wanted.lease_s, wanted.after_tenant,
    wanted.after_precedence, wanted.kind,
    case when wanted.action = 'observe' then budgets.look_floor_s end as floor_s, leave.leave_count,
    least(wanted.room, leave.leave_count) as free, leave.per_s, leave.opens_in_s,
    -- where not all that is due gets a place, tenants are looked for behind a crowd that has nothing due, too
    case when exists (
      select
      from coatcheck.outbox as due
      where due.provider = wanted.provider and due.action = wanted.action and due.action <> 'reconcile' and due.parked_at is null
        and due.visible_at <= coatcheck.due_now()
      -- in their order, or the planner may read the whole table for it when most of it is due
      order by due.visible_at
      offset least(wanted.room, leave.leave_count) limit 1) then 500 else 33 end as hop_limit
  from wanted
  left join budgets using (account)
  cross join lateral (select
    case wanted.action when 'dispatch' then budgets.dispatch_leave when 'observe' then budgets.look_leave end as leave_count,
    case wanted.action when 'dispatch' then budgets.dispatches_per_s when 'observe' then budgets.looks_per_s end as per_s,
    case wanted.action when 'dispatch' then budgets.dispatch_in_s when 'observe' then budgets.look_in_s end as opens_in_s) as leave
),
