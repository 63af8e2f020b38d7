-- purpose: S10: every operation has a tenant, a tenant's key one operation, and every delivered output lies in its tenant's folder
-- guard: none: reading decides nothing
-- index: operations_pkey, operations_key, deliveries_pkey
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.operation_key
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
)
select 'tenant_unnamed' as kind, chunk.operation_id, chunk.tenant_id, null::uuid as dispatch_id,
  format('the tenant is named by %%s bytes', octet_length(chunk.tenant_id)) as detail
from chunk
where octet_length(chunk.tenant_id) not between 1 and 255
union all
select 'key_twice', chunk.operation_id, chunk.tenant_id, null,
  format('operation %%s of the tenant has the same key', coatcheck.operation_text(other.operation_id))
from chunk
join coatcheck.operations as other on other.tenant_id = chunk.tenant_id and other.operation_key = chunk.operation_key
  and other.operation_id <> chunk.operation_id
union all
-- the name of a stored object begins with half the hash of its tenant (delivery/sink.py)
select 'output_elsewhere', chunk.operation_id, chunk.tenant_id, null,
  format('output %%s does not lie in the folder of its tenant', made.output_index)
from chunk
join coatcheck.deliveries as made using (operation_id)
where made.operation_id > (select %(after)s::uuid) and made.operation_id <= (select %(upto)s::uuid) and made.state = 'delivered'
  and position(format('/%%s/', left(encode(sha256(convert_to(chunk.tenant_id, 'UTF8')), 'hex'), 32)) in made.uri) = 0
