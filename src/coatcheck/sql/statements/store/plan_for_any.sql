-- purpose: this session plans what it prepares for any parameters, and compiles nothing
-- guard: only where the client was told this very session's number: behind a pooler it is another's, too
-- index: none: no table is read
select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)
where pg_backend_pid() = %(pid)s::integer
