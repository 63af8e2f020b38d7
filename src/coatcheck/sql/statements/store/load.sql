-- purpose: operations by id, as the handlers decide on them
-- guard: none: reading decides nothing
-- index: operations_pkey
select operation.*, coatcheck.due_now() as read_at
from coatcheck.operations as operation
where operation.operation_id = any(%(operation_id)s::uuid[])
