-- purpose: the immutable texts of operations about to be dispatched
-- guard: none: reading decides nothing; dispatch hashes the text again
-- index: specifications_pkey
select specification.operation_id, specification.specification_text
from coatcheck.specifications as specification
where specification.operation_id = any(%(operation_id)s::uuid[])
