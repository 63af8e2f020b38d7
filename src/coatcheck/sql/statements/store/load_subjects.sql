-- purpose: what leased messages are about: the operation, the text that a dispatch sends, the output that a delivery stores
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: operations_pkey, specifications_pkey, deliveries_pkey
select message.lane, specification.specification_text, delivery.output_index, delivery.state, delivery.source,
  delivery.declared_type, delivery.declared_bytes, delivery.declared_sha256, delivery.uri, delivery.sha256, delivery.bytes,
  delivery.sniffed_type,
-- include: operation_columns
from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(action)s::text[]) as message(operation_id, lane, action)
join coatcheck.operations as operation using (operation_id)
left join coatcheck.specifications as specification
  on message.action = 'dispatch' and specification.operation_id = message.operation_id
left join coatcheck.deliveries as delivery
  on message.action = 'deliver' and delivery.operation_id = message.operation_id
    and delivery.output_index = message.lane - 1
