-- purpose: S6: nothing replaced a final render state, and nothing undid a delivery
-- guard: none: reading decides nothing
-- index: history_pkey, operations_pkey
select case when entry.from_delivery_state = 'delivered' and entry.to_delivery_state <> 'delivered' then 'delivery_undone'
    else 'final_replaced' end as kind,
  entry.operation_id, kept.tenant_id, entry.dispatch_id,
  format('revision %%s: %%s led from %%s, %%s to %%s, %%s', entry.revision, entry.event, entry.from_render_state,
    entry.from_delivery_state, entry.to_render_state, entry.to_delivery_state) as detail
from coatcheck.history as entry
left join coatcheck.operations as kept on kept.operation_id = entry.operation_id
  and kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid)
  and ((entry.from_render_state in ('succeeded', 'failed', 'moderated', 'cancelled', 'expired')
      and entry.to_render_state <> entry.from_render_state)
    or (entry.from_delivery_state = 'delivered' and entry.to_delivery_state <> 'delivered'))
