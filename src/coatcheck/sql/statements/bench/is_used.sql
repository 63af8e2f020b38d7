-- purpose: whether this database is anybody's: operations, a worker that reported lately, or a provider of our name; then nothing is measured here
-- guard: none: reading decides nothing; it is asked before anything is migrated, so it reads what the first migration made
-- index: any one row will do
select exists (select from coatcheck.operations) as has_operations,
  exists (select from coatcheck.workers where stopped_at is null and seen_at > coatcheck.due_now() - interval '20 s') as has_workers,
  exists (select from coatcheck.providers where %(provider)s::text in (name, account)) as has_provider
