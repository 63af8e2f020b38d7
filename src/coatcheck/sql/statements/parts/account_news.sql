-- purpose: what a batch moves in and out of flight, on the accounts that count it, and how long a service asked to be left alone
-- guard: none of its own: `account_news` names only operations that this statement writes; a budget is asked by the mark alone
-- index: accounts_pkey
account_sums as materialized (
  select account, sum(flights) as flights, max(shut_s) as shut_s
  from account_news
  group by account
  having sum(flights) <> 0 or max(shut_s) > 0
),
account_locks as materialized (
  select kept.account
  from coatcheck.accounts as kept
  join account_sums using (account)
  where kept.max_in_flight is not null or account_sums.shut_s > 0
  order by kept.account
  for no key update of kept
),
accounts_moved as (
  update coatcheck.accounts as kept set
    in_flight_count = case when kept.max_in_flight is null then kept.in_flight_count
      else greatest(0, kept.in_flight_count + sums.flights) end,
    dispatch_shut_until = greatest(kept.dispatch_shut_until, coatcheck.lease_now() + make_interval(secs => sums.shut_s))
  from account_locks
  join account_sums as sums using (account)
  where kept.account = account_locks.account
),
