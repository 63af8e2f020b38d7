-- purpose: what leased messages are about, of which their claim could not tell it
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: operations_pkey, specifications_pkey, deliveries_pkey, dispatches_pkey
select message.lane, subject.*
from unnest(%(operation_id)s::uuid[], %(lane)s::smallint[], %(action)s::text[]) as message(operation_id, lane, action)
-- include: subject
where subject.operation_id is not null
