-- purpose: one keyset page of a tenant's operations, oldest first
-- guard: the tenant condition
-- index: operations_tenant_idx, planned afresh for each page: a generic plan may walk operations_pkey through all tenants
select
-- include: operation_columns
from coatcheck.operations as operation
where operation.tenant_id = %(tenant_id)s::text and operation.operation_id > %(after)s::uuid
  and (%(phase)s::text is null or operation.phase = %(phase)s::text)
order by operation.operation_id
limit %(size)s::integer
