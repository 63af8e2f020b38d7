-- purpose: operations by id, as the handlers decide on them
-- guard: none: reading decides nothing
-- index: operations_pkey
select
-- include: operation_columns
from coatcheck.operations as operation
where operation.operation_id = any(%(operation_id)s::uuid[])
