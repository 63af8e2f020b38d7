-- purpose: every provider that was ever configured
-- guard: none: reading decides nothing
-- index: providers_pkey
select name, account, kind, default_estimate, unit, dispatch_paused_at, dispatch_pause_reason, dispatch_paused_by
from coatcheck.providers
order by name
