-- purpose: what each `message` is about: the operation, and what a dispatch sends, a delivery stores, a reconciliation waits out
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: operations_pkey, specifications_pkey, deliveries_pkey, dispatches_pkey
-- one by one, and only for whom it is about: joined freely, a table that was empty when this was planned is read through for every message.
-- Whom it is about may meet that plan until the session plans anew, which it does after what was slow
left join lateral (
  select specification.specification_text, delivery.output_index, delivery.state, delivery.source, delivery.declared_type,
    delivery.declared_bytes, delivery.declared_sha256, delivery.uri, delivery.sha256, delivery.bytes, delivery.sniffed_type,
    dispatch.quiescent_at,
-- include: operation_columns
  from coatcheck.operations as operation
  left join lateral (
    select held.specification_text
    from coatcheck.specifications as held
    where message.action = 'dispatch' and held.operation_id = message.operation_id
    limit 1) as specification on true
  left join lateral (
    select held.output_index, held.state, held.source, held.declared_type, held.declared_bytes, held.declared_sha256, held.uri,
      held.sha256, held.bytes, held.sniffed_type
    from coatcheck.deliveries as held
    where message.action = 'deliver' and held.operation_id = message.operation_id and held.output_index = message.lane - 1
    limit 1) as delivery on true
  left join lateral (
    select held.quiescent_at
    from coatcheck.dispatches as held
    where message.action = 'reconcile' and held.dispatch_id = operation.dispatch_id
    limit 1) as dispatch on true
  where operation.operation_id = message.operation_id
  limit 1) as subject on true
