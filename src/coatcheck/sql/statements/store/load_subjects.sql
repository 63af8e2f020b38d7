-- purpose: what leased messages are about: the operation, and what a dispatch sends, a delivery stores, a reconciliation waits out
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: operations_pkey, specifications_pkey, deliveries_pkey, dispatches_pkey
select message.lane, specification.specification_text, delivery.output_index, delivery.state, delivery.source,
  delivery.declared_type, delivery.declared_bytes, delivery.declared_sha256, delivery.uri, delivery.sha256, delivery.bytes,
  delivery.sniffed_type, dispatch.quiescent_at,
-- include: operation_columns
from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(action)s::text[]) as message(operation_id, lane, action)
join coatcheck.operations as operation using (operation_id)
left join coatcheck.specifications as specification
  on message.action = 'dispatch' and specification.operation_id = message.operation_id
left join coatcheck.deliveries as delivery
  on message.action = 'deliver' and delivery.operation_id = message.operation_id
    and delivery.output_index = message.lane - 1
left join coatcheck.dispatches as dispatch
  on message.action = 'reconcile' and dispatch.dispatch_id = operation.dispatch_id
