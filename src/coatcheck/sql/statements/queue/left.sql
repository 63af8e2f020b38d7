-- purpose: what is left to do for some roles, providers and schema versions, apart from what waits for a person or for accounting
-- guard: none: reading decides nothing
-- index: none: `worker --until-idle` asks only when nothing is due
select count(*) filter (where coalesce(held.wait_reason, '') not in ('allowance', 'pause') or held.leased_by is not null) as left_count,
  count(*) filter (where held.wait_reason in ('allowance', 'pause') and held.leased_by is null) as waiting_count,
  extract(epoch from min(held.visible_at) filter (where coalesce(held.wait_reason, '') not in ('allowance', 'pause'))
    - coatcheck.due_now())::float8 as next_s
from coatcheck.outbox as held
where held.parked_at is null
  and (held.action = 'reconcile' or (held.action = any(%(action)s::text[]) and held.provider = any(%(provider)s::text[])
    and held.schema_version = any(%(schema_version)s::smallint[])
    and (held.account is null or held.account = any(%(account)s::text[]))))
  and coalesce(held.wait_reason, '') <> 'accounting'
