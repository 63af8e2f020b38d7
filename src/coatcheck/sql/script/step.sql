-- Migration {{number}}, {{name}}. One statement: whole or not at all, in your transaction or in its own.
do $step$
declare
  waited constant text := current_setting('lock_timeout');
  known constant text[] := array[{{sha256s}}];
  applied text[];
  migration constant text := {{quote}}{{text}}{{quote}};
begin
  if encode(sha256(convert_to(migration, 'UTF8')), 'hex') <> known[{{number}}] then
    raise exception 'expected the text of migration {{number}} as coatcheck printed it, got another'
      using hint = 'something on the way changed line ends, encoding or placeholders: print the script anew and run it as it is';
  end if;
  perform set_config('lock_timeout', '{{runner_wait_s}}s', true);
  perform pg_advisory_xact_lock({{lock_key}});
  select coalesce(array_agg(sha256 order by number), '{}') into applied from coatcheck.schema_migrations;
  if applied[:{{number}}] = known then
    null; -- somebody else was faster
  elsif applied = known[:{{number}} - 1] then
{{tables}}    execute migration;
    insert into coatcheck.schema_migrations (number, name, sha256, applied_at, oldest_code)
      values ({{number}}, '{{name}}', known[{{number}}], clock_timestamp(), {{oldest_code}});
  elsif applied = known[:cardinality(applied)] then
    raise exception 'expected schema version {{before}}, got %', cardinality(applied)
      using hint = format('print the script anew with --from %s', cardinality(applied));
  else
    raise exception 'expected the migrations of this version of coatcheck, got others'
      using hint = 'use the version of coatcheck that migrated this database, or a newer one';
  end if;
  perform set_config('lock_timeout', waited, true);
end
$step$;
