-- purpose: what a message is about beside its operation, as the value `Subject` has it; the operation's own columns follow
-- guard: none: reading decides nothing
-- index: none
  specification.specification_text, delivery.output_index, delivery.state, delivery.source, delivery.declared_type,
  delivery.declared_bytes, delivery.declared_sha256, delivery.uri, delivery.sha256, delivery.bytes, delivery.sniffed_type,
  dispatch.quiescent_at,
