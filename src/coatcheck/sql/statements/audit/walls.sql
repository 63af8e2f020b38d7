-- purpose: what the schema itself promises for an invariant and is not there, not valid or switched off
-- guard: none: reading decides nothing
-- index: the catalogue's own
with wanted as (
  select wall.invariant, wall.kind, wall.relation, wall.name, wall.columns
  from (values
    ('S1', 'index', 'dispatches', 'dispatches_pkey', 'dispatch_id'),
    ('S1', 'index', 'dispatches', 'dispatches_number', 'operation_id, number'),
    ('S1', 'check', 'operations', 'operations_mark', null),
    ('S2', 'index', 'dispatches', 'dispatches_authorisation_idx', 'operation_id, authorisation'),
    ('S4', 'check', 'operations', 'operations_remote_job', null),
    ('S5', 'index', 'remote_jobs', 'remote_jobs_pkey', 'account, remote_job_id'),
    ('S6', 'check', 'operations', 'operations_final', null),
    ('S7', 'index', 'history', 'history_pkey', 'operation_id, revision'),
    ('S7', 'trigger', 'history', 'history_append_only', null),
    ('S10', 'index', 'operations', 'operations_key', 'tenant_id, operation_key'),
    ('S10', 'check', 'operations', 'operations_tenant', null),
    ('S11', 'index', 'allowances', 'allowances_pkey', 'tenant_id, unit'),
    ('S11', 'check', 'allowances', 'allowances_amounts', null),
    ('S11', 'check', 'dispatches', 'dispatches_amounts', null),
    ('S12', 'index', 'outbox', 'outbox_pkey', 'operation_id, lane'),
    ('S12', 'check', 'operations', 'operations_delivery', null),
    ('S12', 'trigger', 'specifications', 'specifications_immutable', null)
  ) as wall(invariant, kind, relation, name, columns)
),
tables as (
  select class.oid, class.relname
  from pg_catalog.pg_class as class
  where class.relnamespace = 'coatcheck'::regnamespace and class.relkind = 'r'
),
standing as (
  select 'index' as kind, tables.relname, named.relname as name, keys.columns
  from tables
  join pg_catalog.pg_index as unique_index on unique_index.indrelid = tables.oid
  join pg_catalog.pg_class as named on named.oid = unique_index.indexrelid
  cross join lateral (
    select string_agg(member.attname, ', ' order by key.position) as columns
    from unnest(unique_index.indkey::smallint[]) with ordinality as key(number, position)
    join pg_catalog.pg_attribute as member on member.attrelid = tables.oid and member.attnum = key.number
  ) as keys
  where unique_index.indisunique and unique_index.indisvalid and unique_index.indisready
  union all
  select 'check', tables.relname, checked.conname, null
  from tables
  join pg_catalog.pg_constraint as checked on checked.conrelid = tables.oid
  where checked.contype = 'c' and checked.convalidated
  union all
  select 'trigger', tables.relname, watched.tgname, null
  from tables
  join pg_catalog.pg_trigger as watched on watched.tgrelid = tables.oid
  where watched.tgenabled in ('O', 'A')
)
select wanted.invariant, format('%%s %%s of coatcheck.%%s is missing, not valid or switched off', wanted.kind, wanted.name, wanted.relation)
    as detail
from wanted
where not exists (
  select from standing
  where standing.kind = wanted.kind and standing.relname = wanted.relation and standing.name = wanted.name
    and standing.columns is not distinct from wanted.columns)
order by wanted.invariant, wanted.name
