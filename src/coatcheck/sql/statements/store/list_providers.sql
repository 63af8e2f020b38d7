-- purpose: every provider that was ever configured
-- guard: none: reading decides nothing
-- index: providers_pkey
select
-- include: provider_columns
from coatcheck.providers as provider
order by provider.name
