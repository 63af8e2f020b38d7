-- purpose: what is left to do for some roles, providers and schema versions, apart from what waits for a person or for accounting
-- guard: none: reading decides nothing
-- index: none: `worker --until-idle` asks only when nothing is due
with configured as (
  select * from unnest(%(provider)s::text[], %(account)s::text[]) as pair(provider, account)
),
mine as (
  select held.visible_at, held.leased_by, coalesce(held.wait_reason, '') in ('allowance', 'pause') as waits
  from coatcheck.outbox as held
  join configured on configured.provider = held.provider and (held.account is null or held.account = configured.account)
  where held.parked_at is null
    and coalesce(held.wait_reason, '') <> 'accounting'
    and (held.action = any(%(action)s::text[])
      or (held.action = 'reconcile' and held.wait_reason is distinct from 'lookup'))
    and held.schema_version = any(%(schema_version)s::smallint[])
)
select count(*) filter (where not waits or leased_by is not null) as left_count,
  count(*) filter (where waits and leased_by is null) as waiting_count,
  extract(epoch from min(visible_at) filter (where not waits) - coatcheck.due_now())::float8 as next_s
from mine
