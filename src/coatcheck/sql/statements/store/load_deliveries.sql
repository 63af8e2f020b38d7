-- purpose: the outputs of operations, in order
-- guard: none: reading decides nothing
-- index: deliveries_pkey
select delivery.operation_id, delivery.output_index, delivery.state, delivery.source, delivery.declared_type,
  delivery.declared_bytes, delivery.declared_sha256, delivery.uri, delivery.sha256, delivery.bytes, delivery.sniffed_type
from coatcheck.deliveries as delivery
where delivery.operation_id = any(%(operation_id)s::uuid[])
order by delivery.operation_id, delivery.output_index
