-- purpose: the incidents of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: incidents_pkey
select kept.operation_id, kept.kind, kept.boundary, kept.detail, kept.count, kept.first_at, kept.last_at
from coatcheck.incidents as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.kind
