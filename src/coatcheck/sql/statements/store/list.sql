-- purpose: one keyset page of all tenants' operations, oldest first, for the operator
-- guard: none: the operator's view
-- index: operations_pkey
select
-- include: operation_columns
from coatcheck.operations as operation
where operation.operation_id > %(after)s::uuid
  and (%(phase)s::text is null or operation.phase = %(phase)s::text)
order by operation.operation_id
limit %(size)s::integer
