-- purpose: what our schema is made of, each object with its definition in words that a search path and a version of PostgreSQL do not change
-- guard: reads the catalogue only, with search_path set to pg_catalog
-- index: pg_class_relname_nsp_index and the catalogue's own by relation
with
  ours as (
    select oid, relname, relkind, relpersistence
    from pg_class
    where relnamespace = to_regnamespace('coatcheck') and relkind in ('r', 'S') and relname <> 'schema_migrations'
  ),
  tables as (
    select oid, relname, relpersistence from ours where relkind = 'r'
  ),
  columns as (
    select 'column' as kind, tables.relname || '.' || attribute.attname as name,
      concat_ws(' ', format_type(attribute.atttypid, attribute.atttypmod), case when attribute.attnotnull then 'not null' end,
        'default ' || pg_get_expr(preset.adbin, preset.adrelid)) as definition
    from tables
    join pg_attribute as attribute on attribute.attrelid = tables.oid and attribute.attnum > 0 and not attribute.attisdropped
    left join pg_attrdef as preset on preset.adrelid = attribute.attrelid and preset.adnum = attribute.attnum
  ),
  -- not-null constraints are columns' words, and only PostgreSQL 18 has rows for them
  constraints as (
    select 'constraint' as kind, tables.relname || '.' || rule.conname as name, pg_get_constraintdef(rule.oid) as definition
    from tables
    join pg_constraint as rule on rule.conrelid = tables.oid and rule.contype in ('c', 'f', 'p', 'u', 'x')
  ),
  indexes as (
    select 'index' as kind, tables.relname || '.' || named.relname as name,
      pg_get_indexdef(index.indexrelid) || case when index.indisvalid then '' else ' (invalid)' end as definition
    from tables
    join pg_index as index on index.indrelid = tables.oid
    join pg_class as named on named.oid = index.indexrelid
  ),
  triggers as (
    select 'trigger' as kind, tables.relname || '.' || trigger.tgname as name,
      pg_get_triggerdef(trigger.oid) || case when trigger.tgenabled = 'O' then '' else ' (disabled)' end as definition
    from tables
    join pg_trigger as trigger on trigger.tgrelid = tables.oid and not trigger.tgisinternal
  ),
  functions as (
    select 'function' as kind, proname || '(' || pg_get_function_identity_arguments(oid) || ')' as name,
      'sha256 ' || encode(sha256(convert_to(pg_get_functiondef(oid), 'UTF8')), 'hex') as definition
    from pg_proc
    where pronamespace = to_regnamespace('coatcheck') and prokind = 'f'
  ),
  sequences as (
    select 'sequence' as kind, ours.relname::text as name,
      format('%%s increment %%s cache %%s%%s', sequence.seqtypid::regtype, sequence.seqincrement, sequence.seqcache,
        case when sequence.seqcycle then ' cycle' end) as definition
    from ours
    join pg_sequence as sequence on sequence.seqrelid = ours.oid
  ),
  objects as (
    select 'table' as kind, relname::text as name,
      case relpersistence when 'p' then 'logged' else 'unlogged' end as definition
    from tables
    union all
    select kind, name, definition from columns
    union all
    select kind, name, definition from constraints
    union all
    select kind, name, definition from indexes
    union all
    select kind, name, definition from triggers
    union all
    select kind, name, definition from functions
    union all
    select kind, name, definition from sequences
  )
select kind, name, regexp_replace(definition, '\s+', ' ', 'g') as definition from objects
