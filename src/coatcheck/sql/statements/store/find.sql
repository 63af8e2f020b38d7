-- purpose: one operation, under its tenant where one is named
-- guard: the tenant condition: a foreign id answers like an unknown one
-- index: operations_pkey
select
-- include: operation_columns
from coatcheck.operations as operation
where operation.operation_id = %(operation_id)s::uuid
  and (%(tenant_id)s::text is null or operation.tenant_id = %(tenant_id)s::text)
