-- purpose: the messages of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: outbox_pkey
select kept.*
from coatcheck.outbox as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.lane
