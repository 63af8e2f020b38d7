-- purpose: every dispatch with its end and its money, for the account
-- guard: none: reading decides nothing
-- index: none: the demo's tables are small
select sent.operation_id, sent.authorisation, sent.worker, sent.outcome, sent.cause,
  sent.ended_at is not null as ended, sent.held, sent.charged, sent.basis
from coatcheck.dispatches as sent
order by sent.operation_id, sent.number
