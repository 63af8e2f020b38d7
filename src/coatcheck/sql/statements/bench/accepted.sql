-- purpose: which specification each accepted operation has: by its hash the service's ledger knows its POST
-- guard: none: reading decides nothing
-- index: none: read once, when all is over
select coatcheck.operation_text(accepted.operation_id) as operation_id,
  encode(accepted.specification_hash, 'hex') as specification_hash
from coatcheck.operations as accepted
where accepted.accepted_at is not null
