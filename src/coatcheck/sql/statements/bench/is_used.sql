-- purpose: whether anybody's operations are in this database, or a worker reported lately: then nothing is measured here
-- guard: none: reading decides nothing
-- index: any one row will do
select exists (select from coatcheck.operations) as has_operations,
  exists (select from coatcheck.workers where stopped_at is null and seen_at > coatcheck.due_now() - interval '20 s') as has_workers
