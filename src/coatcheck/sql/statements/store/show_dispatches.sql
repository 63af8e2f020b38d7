-- purpose: the dispatches of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: dispatches_number
select kept.*
from coatcheck.dispatches as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.number
