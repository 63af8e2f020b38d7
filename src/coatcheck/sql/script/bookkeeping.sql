-- What remembers the migrations. It is no migration itself: it has to be there before the first one.
do $bookkeeping$
declare
  waited constant text := current_setting('lock_timeout');
begin
  perform set_config('lock_timeout', '{{runner_wait_s}}s', true);
  perform pg_advisory_xact_lock({{lock_key}});
  perform set_config('lock_timeout', '{{table_wait_s}}s', true);
  -- asked first: `if not exists` wants the privilege to create even where there is nothing to create
  if to_regnamespace('coatcheck') is null then
    create schema coatcheck;
  end if;
  if to_regclass('coatcheck.schema_migrations') is null then
    create table coatcheck.schema_migrations (
      number     integer     not null,
      name       text        not null,
      sha256     text        not null,
      applied_at timestamptz not null,
      constraint schema_migrations_pkey primary key (number),
      constraint schema_migrations_sha256 check (sha256 ~ '^[0-9a-f]{64}$')
    );
  end if;
  if not exists (select from pg_catalog.pg_attribute
      where attrelid = 'coatcheck.schema_migrations'::regclass and attname = 'oldest_code') then
    -- which versions of coatcheck may work on what the migration left; null: its own and later ones
    alter table coatcheck.schema_migrations
      add column oldest_code integer,
      add constraint schema_migrations_oldest_code check (oldest_code between 1 and number);
  end if;
  perform set_config('lock_timeout', waited, true);
end
$bookkeeping$;
