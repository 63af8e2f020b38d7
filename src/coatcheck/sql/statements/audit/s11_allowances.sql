-- purpose: S11: what an allowance says is held and charged, beside the sums over its tenant's dispatches, as of one instant
-- guard: none: reading decides nothing
-- index: allowances_pkey, operations_tenant_idx, dispatches_number
with page as materialized (
  select kept.tenant_id, kept.unit, kept.held, kept.charged
  from coatcheck.allowances as kept
  where (kept.tenant_id, kept.unit) > (%(after_tenant)s::text, %(after_unit)s::text)
  order by kept.tenant_id, kept.unit
  limit %(size)s::integer
)
select case when (page.held, page.charged) <> (sums.held, sums.charged) then 'allowance_differs' end as kind, page.tenant_id,
  page.unit,
  format('the allowance says %%s %%s held and %%s charged, the dispatches add up to %%s and %%s', page.held, page.unit, page.charged,
    sums.held, sums.charged) as detail
from page
cross join lateral (
  select coalesce(sum(sent.held) filter (where sent.settled_at is null), 0) as held, coalesce(sum(sent.charged), 0) as charged
  from coatcheck.operations as kept
  join coatcheck.dispatches as sent on sent.operation_id = kept.operation_id
  where kept.tenant_id = page.tenant_id and sent.unit = page.unit
) as sums
order by page.tenant_id, page.unit
