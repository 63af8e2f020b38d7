-- purpose: stop the dispatches of a provider's account; every name of the account is paused
-- guard: marks lock these rows, so none is committed after this
-- index: providers_pkey
with affected as materialized (
  select held.name
  from coatcheck.providers as held
  where held.account = (select known.account from coatcheck.providers as known where known.name = %(name)s)
  order by held.name
  for no key update
)
update coatcheck.providers as provider set
  dispatch_paused_at = coalesce(provider.dispatch_paused_at, coatcheck.lease_now()),
  dispatch_pause_reason = %(reason)s,
  dispatch_paused_by = %(actor)s
from affected
where provider.name = affected.name
