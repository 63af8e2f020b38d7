-- purpose: why nobody may take what is due for a name of an account, apart for dispatches and for looks; null: a worker may
-- guard: none: reading decides nothing; a rate that a worker used lately is what its messages wait for, though a token may be free just now
-- index: none: both tables hold a few rows
account_waits as materialized (
  select named.name as provider, named.account, budget.look_floor_s,
    case
      when bool_or(named.dispatch_paused_at is not null) over (partition by named.account) then 'pause'
      when budget.dispatch_shut_until > clock.at then 'shut'
      when budget.in_flight_count >= budget.max_in_flight then 'cap'
      when budget.dispatches_per_s is not null and budget.dispatch_turn_at > clock.at - interval '1 minute' then 'rate' end as dispatch_wait,
    case
      when budget.observation_paused_at is not null then 'pause'
      when budget.look_shut_until > clock.at then 'shut'
      when budget.looks_per_s is not null and budget.look_turn_at > clock.at - interval '1 minute' then 'rate' end as look_wait
  from coatcheck.providers as named
  left join coatcheck.accounts as budget using (account)
  cross join (select coatcheck.due_now() as at) as clock
),
