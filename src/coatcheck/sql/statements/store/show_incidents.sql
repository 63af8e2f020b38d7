-- purpose: the incidents of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: incidents_pkey
select kept.*
from coatcheck.incidents as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.kind
