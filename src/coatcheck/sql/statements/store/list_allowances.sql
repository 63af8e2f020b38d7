-- purpose: a page of allowances with how many operations wait for each
-- guard: none: reading decides nothing
-- index: allowances_pkey, operations_key and outbox_pkey for the tenants of the page alone
with page as materialized (
  select kept.tenant_id, kept.unit, kept.ceiling, kept.held, kept.charged, kept.set_by, kept.updated_at
  from coatcheck.allowances as kept
  where (kept.tenant_id, kept.unit) > (%(after_tenant)s::text, %(after_unit)s::text)
    and kept.tenant_id = coalesce(%(tenant_id)s::text, kept.tenant_id)
    and kept.unit = coalesce(%(unit)s::text, kept.unit)
  order by kept.tenant_id, kept.unit
  limit %(size)s::integer
),
waits as (
  select operation.tenant_id, operation.unit, count(*) as waiting_count
  from coatcheck.outbox as held
  join coatcheck.operations as operation using (operation_id)
  join page on page.tenant_id = operation.tenant_id and page.unit = operation.unit
  where held.parked_at is null and held.action = 'dispatch' and held.wait_reason = 'allowance'
  group by operation.tenant_id, operation.unit
)
select page.tenant_id, page.unit, page.ceiling as limit, page.held, page.charged, page.ceiling - page.held - page.charged as left,
  coalesce(waits.waiting_count, 0) as waiting, page.updated_at, page.set_by
from page
left join waits using (tenant_id, unit)
order by page.tenant_id, page.unit
