-- purpose: providers that were ever configured, with what their accounts may be asked for; all, or one by its name
-- guard: none: reading decides nothing
-- index: providers_pkey, accounts_pkey
select provider.name, provider.account, provider.kind, provider.default_estimate, provider.unit,
  budget.max_in_flight, case when budget.max_in_flight is not null then budget.in_flight_count end as in_flight_count,
  budget.dispatches_per_s, budget.looks_per_s, budget.look_floor_s,
  case when budget.dispatch_shut_until > coatcheck.due_now() then budget.dispatch_shut_until end as dispatch_shut_until,
  case when budget.look_shut_until > coatcheck.due_now() then budget.look_shut_until end as look_shut_until,
  provider.doubt_limit, provider.doubt_count, provider.dispatch_paused_at, provider.dispatch_pause_reason,
  provider.dispatch_paused_by, provider.dispatch_resumed_at, provider.dispatch_resume_reason, provider.dispatch_resumed_by,
  budget.observation_paused_at, budget.observation_pause_reason, budget.observation_paused_by, budget.observation_probe_at,
  budget.observation_resumed_at, budget.observation_resume_reason, budget.observation_resumed_by, budget.failed_look_count
from coatcheck.providers as provider
left join coatcheck.accounts as budget using (account)
where %(name)s::text is null or provider.name = %(name)s::text
order by provider.name
