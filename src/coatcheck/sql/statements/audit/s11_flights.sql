-- purpose: S11: what an account with a limit counts in flight, beside what is in flight there, as of one instant
-- guard: none: reading decides nothing
-- index: none: every operation is read once, where any account has a limit
with limited as materialized (
  select kept.account, kept.in_flight_count
  from coatcheck.accounts as kept
  where kept.max_in_flight is not null
),
flights as (
  select kept.account, count(*) as number
  from coatcheck.operations as kept
  where kept.account in (select account from limited) and coatcheck.is_in_flight(kept.phase, kept.render_state)
  group by kept.account
)
select 'flights_differ' as kind, null::uuid as operation_id, null::text as tenant_id, null::uuid as dispatch_id,
  format('account %%s counts %%s in flight, and there are %%s', limited.account, limited.in_flight_count, coalesce(flights.number, 0))
    as detail
from limited
left join flights using (account)
where limited.in_flight_count <> coalesce(flights.number, 0)
order by limited.account
