-- purpose: stop the dispatches of a provider's account; every name of the account is paused
-- guard: marks lock these rows, so none is committed after this
-- index: providers_pkey
with affected as materialized (
  select held.name
  from coatcheck.providers as held
  where held.account = (select known.account from coatcheck.providers as known where known.name = %(name)s)
  order by held.name
  for no key update
),
paused as (
  update coatcheck.providers as held set
    dispatch_paused_at = coalesce(held.dispatch_paused_at, coatcheck.lease_now()),
    dispatch_pause_reason = %(reason)s,
    dispatch_paused_by = %(actor)s
  from affected
  where held.name = affected.name
  returning held.name, held.account, held.kind, held.default_estimate, held.unit, held.dispatch_paused_at,
    held.dispatch_pause_reason, held.dispatch_paused_by
)
select name, account, kind, default_estimate, unit, dispatch_paused_at, dispatch_pause_reason, dispatch_paused_by
from paused
where name = %(name)s
