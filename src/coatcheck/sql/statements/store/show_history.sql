-- purpose: the history of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: history_pkey
select kept.*
from coatcheck.history as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.revision
