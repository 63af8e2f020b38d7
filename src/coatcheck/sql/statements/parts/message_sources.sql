-- purpose: the messages in `held` with their operations, and for what is set aside the row that has the cause
-- guard: none: reading decides nothing
-- index: operations_pkey, deliveries_pkey, dispatches_pkey
from held
left join coatcheck.operations as operation using (operation_id)
left join coatcheck.deliveries as delivery
  on held.park_reason = 'delivery_failed' and delivery.operation_id = held.operation_id and delivery.output_index = held.lane - 1
left join coatcheck.dispatches as dispatch
  on held.park_reason = 'uncertain' and dispatch.dispatch_id = operation.dispatch_id
