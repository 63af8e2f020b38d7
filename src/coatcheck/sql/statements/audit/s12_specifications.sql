-- purpose: S12: every operation has its specification, and it is the text that was hashed, so that it can be dispatched
-- guard: none: reading decides nothing
-- index: operations_pkey, specifications_pkey, history_pkey
-- retention takes those of what is over
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.specification_hash, kept.phase in ('rejected', 'cancelled', 'abandoned')
    or (kept.phase in ('accepted', 'submission_failed') and kept.final_at is not null) as is_over
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
texts as (
  select asked.operation_id, sha256(convert_to(asked.specification_text, 'UTF8')) as hash
  from coatcheck.specifications as asked
  where asked.operation_id > (select %(after)s::uuid) and asked.operation_id <= (select %(upto)s::uuid)
)
select case
    when texts.operation_id is null then 'specification_missing'
    when chunk.operation_id is null then 'specification_without_operation'
    else 'specification_differs' end as kind,
  coalesce(chunk.operation_id, texts.operation_id) as operation_id, chunk.tenant_id, null::uuid as dispatch_id,
  case
    when texts.operation_id is null then 'no specification'
    when chunk.operation_id is null then 'a specification, and the operation is gone'
    else 'the specification does not hash to specification_hash' end as detail
from chunk
full join texts using (operation_id)
where chunk.specification_hash is distinct from texts.hash
  and not (texts.operation_id is null and chunk.is_over and exists (
    select from coatcheck.history as entry where entry.operation_id = chunk.operation_id and entry.event = 'retired'))
