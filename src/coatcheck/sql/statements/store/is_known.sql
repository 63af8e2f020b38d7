-- purpose: whether a worker or a person made a provider known to this database
-- guard: none: reading decides nothing
-- index: providers_pkey
select exists (select from coatcheck.providers as known where known.name = %(name)s::text) as is_known
