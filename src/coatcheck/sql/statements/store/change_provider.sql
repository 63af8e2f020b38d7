-- purpose: what an operation that names no estimate is expected to cost at a provider, and after how many doubts in a row its account pauses
-- guard: marks lock this row, so each of them reads the estimate as it was before or after this; what is not given stays
-- index: providers_pkey
update coatcheck.providers as provider set
  default_estimate = case when %(sets_default_estimate)s::boolean then %(default_estimate)s::numeric else provider.default_estimate end,
  unit = coalesce(%(unit)s::text, provider.unit),
  doubt_limit = case when %(sets_doubt_limit)s::boolean then %(doubt_limit)s::integer else provider.doubt_limit end
where provider.name = %(name)s::text
