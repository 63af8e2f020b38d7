-- purpose: S11: a hold lives exactly as long as the doubt, and what created nothing costs nothing
-- guard: none: reading decides nothing
-- index: operations_pkey, dispatches_number
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.phase, kept.dispatch_id, kept.final_at
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
)
select case
    when kept.held < 0 or kept.orphaned < 0 or kept.charged < kept.orphaned then 'amount_negative'
    when kept.settled_at is null then 'hold_forgotten'
    else 'charge_for_nothing' end as kind,
  kept.operation_id, chunk.tenant_id, kept.dispatch_id,
  format('dispatch %%s, %%s, holds %%s and charges %%s %%s%%s', kept.number, kept.outcome, kept.held,
    coalesce(kept.charged::text, 'nothing yet, in'), kept.unit, coalesce(', ' || kept.basis, '')) as detail
from coatcheck.dispatches as kept
join chunk using (operation_id)
where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
  and (kept.held < 0 or kept.orphaned < 0 or kept.charged < kept.orphaned
    -- what another job of the same POST cost is a part of the charge
    or (coatcheck.outcome_rank(kept.outcome) = 2 and kept.charged is distinct from kept.orphaned)
    -- open are only the last dispatch of what is in doubt, and that of a render that is not final
    or (kept.settled_at is null and not (kept.dispatch_id = chunk.dispatch_id
      and (chunk.phase in ('dispatching', 'uncertain')
        or (chunk.phase in ('accepted', 'submission_failed') and chunk.final_at is null)))))
