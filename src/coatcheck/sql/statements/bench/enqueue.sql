-- purpose: fill the queue of a measurement with operations of a few tenants, numbered from first to last
-- guard: enqueue_v1's own; keys carry the prefix, so no two measurements meet
-- index: operations_key, as any enqueue
select asked.answer ->> 'operation_id' as operation_id, asked.answer ->> 'specification_hash' as specification_hash
from generate_series(%(first)s::integer, %(last)s::integer) as n
cross join lateral coatcheck.enqueue_v1(jsonb_build_object('v', 1,
  'tenant_id', 'bench ' || mod(n, %(tenants)s::integer),
  'operation_key', %(prefix)s::text || ' ' || n,
  'provider', %(provider)s::text,
  'specification_text', '{"prompt":"' || %(prefix)s::text || ' ' || n || '"' || %(more)s::text || '}')) as asked(answer)
