-- purpose: what leased messages are about, of which their claim could not tell it
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: operations_pkey, specifications_pkey, deliveries_pkey, dispatches_pkey
select message.lane,
-- include: subject_columns
-- include: operation_columns
from (
  select asked.operation_id as subject_id, asked.lane, asked.action, null::integer as text_limit_bytes
  from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(action)s::text[]) as asked(operation_id, lane, action)) as message
-- include: subject
where operation.operation_id is not null
