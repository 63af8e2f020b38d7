-- purpose: forget the provider that a measurement sent to, its account and the workers that sent
-- guard: before the measurement there was no such provider, and these workers are its own
-- index: providers_pkey, accounts_pkey, workers_pkey
with provider as (
  delete from coatcheck.providers where name = %(provider)s::text
),
account as (
  delete from coatcheck.accounts where account = %(provider)s::text
)
delete from coatcheck.workers where incarnation = any(%(incarnations)s::text[])
