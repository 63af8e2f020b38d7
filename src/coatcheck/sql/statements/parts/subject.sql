-- purpose: what each `message` is about: the operation `subject_id`, and what a dispatch sends, a delivery stores, a reconciliation waits out
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: operations_pkey, specifications_pkey, deliveries_pkey, dispatches_pkey
left join coatcheck.operations as operation on operation.operation_id = message.subject_id
-- one by one, and only for whom it is about: joined freely, a table that was empty when this was planned is read through for every message.
-- Whom it is about may meet that plan until the session plans anew, which it does after what was slow
left join lateral (
  select held.specification_text
  from coatcheck.specifications as held
  where message.action = 'dispatch' and held.operation_id = message.subject_id
    and octet_length(held.specification_text) <= coalesce(message.text_limit_bytes, 2147483647)
  limit 1) as specification on true
left join lateral (
  select held.output_index, held.state, held.source, held.declared_type, held.declared_bytes, held.declared_sha256, held.uri,
    held.sha256, held.bytes, held.sniffed_type
  from coatcheck.deliveries as held
  where message.action = 'deliver' and held.operation_id = message.subject_id and held.output_index = message.lane - 1
    and octet_length(held.source) <= coalesce(message.text_limit_bytes, 2147483647)
  limit 1) as delivery on true
left join lateral (
  select held.quiescent_at
  from coatcheck.dispatches as held
  where message.action = 'reconcile' and held.dispatch_id = operation.dispatch_id
  limit 1) as dispatch on true
