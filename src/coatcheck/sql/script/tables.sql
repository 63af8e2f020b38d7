  -- Every table at once or none. The first ones are waited for, in the order in which an enqueueing transaction takes them; statements of
  -- workers take theirs in any order and for a moment, so who has not the rest at once lets go and tries again. An attempt ends before
  -- anybody who waits behind it looks for deadlocks: the application waits for moments and is never the one that has to give up.
  declare
    first constant text[] := array['providers', 'allowances', 'operations'];
    give_up_at constant timestamptz := clock_timestamp() + interval '{{table_wait_s}} s';
    attempt_ends_at timestamptz;
    left_ms numeric;
    wanted record;
  begin
    loop
      begin
        attempt_ends_at := clock_timestamp() + interval '{{attempt_ms}} ms';
        for wanted in
          select oid::regclass as name, array_position(first, relname::text) as place
          from pg_catalog.pg_class
          where relnamespace = 'coatcheck'::regnamespace and relkind = 'r' and relname <> 'schema_migrations'
          order by place, oid
        loop
          left_ms := extract(epoch from attempt_ends_at - clock_timestamp()) * 1000;
          perform set_config('lock_timeout', greatest(1, case when wanted.place is null then least(left_ms, 30) else left_ms end)::integer::text, true);
          execute format('lock table %s in access exclusive mode', wanted.name);
        end loop;
        exit;
      exception when lock_not_available or deadlock_detected then
        if clock_timestamp() >= give_up_at then
          raise;
        end if;
        perform pg_sleep(0.03 + 0.1 * random());
      end;
    end loop;
    perform set_config('lock_timeout', '{{table_wait_s}}s', true);
  end;
