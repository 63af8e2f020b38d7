-- purpose: what an operation that names no estimate is expected to cost at a provider
-- guard: marks lock this row, so each of them reads the estimate as it was before or after this
-- index: providers_pkey
update coatcheck.providers as provider set
  default_estimate = %(default_estimate)s::numeric,
  unit = coalesce(%(unit)s::text, provider.unit)
where provider.name = %(name)s::text
returning
-- include: provider_columns
