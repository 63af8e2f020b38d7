-- purpose: one keyset page of incidents, for the person who looks for what went against the protocol
-- guard: none: the operator's view, under a tenant where one is named
-- index: incidents_pkey, operations_pkey
select kept.operation_id, operation.tenant_id, kept.kind, kept.boundary, kept.count, kept.first_at, kept.last_at, kept.detail
from coatcheck.incidents as kept
left join coatcheck.operations as operation using (operation_id)
where (kept.operation_id, kept.kind) > (%(after)s::uuid, %(after_kind)s::text)
  and (%(kind)s::text is null or kept.kind = %(kind)s::text)
  and (%(tenant_id)s::text is null or operation.tenant_id = %(tenant_id)s::text)
  and (%(since)s::timestamptz is null or kept.last_at >= %(since)s::timestamptz)
order by kept.operation_id, kept.kind
limit %(size)s::integer
