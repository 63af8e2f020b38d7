-- purpose: whether an operation is not one of the measurement's
-- guard: asked under the lock of the table, so that none comes between the answer and the clearing
-- index: none: whoever clears reads all of it once
select exists (
  select from coatcheck.operations
  where provider <> %(provider)s::text or tenant_id not like 'bench %%') as has_strangers
