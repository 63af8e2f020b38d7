-- purpose: the statement that follows in this transaction keeps one plan, whatever its parameters, how full its tables were and what the server compiles
-- guard: local to the transaction, so nobody else's statement on a shared connection is planned otherwise
-- index: none
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
