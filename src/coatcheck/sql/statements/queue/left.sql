-- purpose: what is left to do for some roles, providers and schema versions, apart from what waits for a person or for accounting
-- guard: none: reading decides nothing
-- index: none: `worker --until-idle` asks only when nothing is due
with configured as (
  select * from unnest(%(provider)s::text[], %(account)s::text[]) as pair(provider, account)
),
-- no claim takes a look of these, and of a full one no dispatch, so what is due there was tried by the claim that found nothing
closed as (
  select budget.account, budget.observation_paused_at is not null as is_unwatched,
    budget.in_flight_count >= budget.max_in_flight and exists (
      select from coatcheck.providers as known
      where known.account = budget.account and known.dispatch_paused_at is not null) as is_full_and_paused
  from coatcheck.accounts as budget
  where budget.account in (select account from configured)
),
mine as (
  select held.visible_at, held.leased_by is not null and held.visible_at > coatcheck.due_now() as is_leased,
    case held.action
      when 'dispatch' then (held.wait_reason in ('allowance', 'pause') and held.visible_at > coatcheck.due_now())
        or closed.is_full_and_paused
      -- of reconciliation only what is looked up asks the service
      when 'observe' then closed.is_unwatched
      when 'reconcile' then closed.is_unwatched and held.wait_reason = 'lookup' end as waits
  from coatcheck.outbox as held
  join configured on configured.provider = held.provider and (held.account is null or held.account = configured.account)
  left join closed on closed.account = configured.account
  where held.parked_at is null
    and coalesce(held.wait_reason, '') <> 'accounting'
    and (held.action = any(%(action)s::text[])
      or (held.action = 'reconcile' and held.wait_reason is distinct from 'lookup'))
    and held.schema_version = any(%(schema_version)s::smallint[])
)
select count(*) filter (where waits is not true or is_leased) as left_count,
  count(*) filter (where waits and not is_leased) as waiting_count,
  extract(epoch from min(visible_at) filter (where waits is not true or is_leased) - coatcheck.due_now())::float8 as next_s
from mine
