-- purpose: what server this is, for the machine's description, whether it times flushes, and which process answers
-- guard: none: reading decides nothing
-- index: none: settings of the server's own
select current_setting('server_version') as version, current_setting('server_version_num')::integer as version_number,
  current_setting('track_wal_io_timing')::boolean as is_timed,
  pg_backend_pid() as pid, inet_server_addr() is null or inet_server_addr() = inet_client_addr() as is_here
