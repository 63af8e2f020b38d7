-- purpose: one keyset page of operations, oldest first
-- guard: the tenant condition where a tenant is named
-- index: operations_tenant_idx, operations_pkey
select operation.*, coatcheck.due_now() as read_at
from coatcheck.operations as operation
where operation.operation_id > %(after)s::uuid
  and (%(tenant_id)s::text is null or operation.tenant_id = %(tenant_id)s::text)
  and (%(phase)s::text is null or operation.phase = %(phase)s::text)
order by operation.operation_id
limit %(size)s::integer
