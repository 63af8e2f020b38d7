-- purpose: what a batch holds and charges, added up per tenant and unit, on the allowances that there are
-- guard: none of its own: `amounts` names only dispatches that this statement writes; a limit is asked by the mark alone
-- index: allowances_pkey
allowance_sums as materialized (
  select tenant_id, unit, sum(held) as held, sum(charged) as charged
  from amounts
  group by tenant_id, unit
  having sum(held) <> 0 or sum(charged) <> 0
),
allowance_locks as materialized (
  select kept.tenant_id, kept.unit
  from coatcheck.allowances as kept
  join allowance_sums using (tenant_id, unit)
  order by kept.tenant_id, kept.unit
  for no key update of kept
),
allowances_moved as (
  update coatcheck.allowances as kept set
    held = kept.held + sums.held,
    charged = kept.charged + sums.charged
  from allowance_locks
  join allowance_sums as sums using (tenant_id, unit)
  where kept.tenant_id = allowance_locks.tenant_id and kept.unit = allowance_locks.unit
),
