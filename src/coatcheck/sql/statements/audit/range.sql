-- purpose: the next operations to audit: how many they are, and the last of them
-- guard: none: reading decides nothing
-- index: operations_pkey
with page as materialized (
  select kept.operation_id
  from coatcheck.operations as kept
  where kept.operation_id > %(after)s::uuid
  order by kept.operation_id
  limit %(size)s::integer
)
select (select count(*) from page) as operation_count,
  (select operation_id from page order by operation_id desc limit 1) as last_id
