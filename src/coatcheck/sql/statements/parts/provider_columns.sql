-- purpose: a provider's row as the value `ProviderRow` has it
-- guard: none: reading decides nothing
-- index: none
  provider.name, provider.account, provider.kind, provider.default_estimate, provider.unit, provider.dispatch_paused_at,
  provider.dispatch_pause_reason, provider.dispatch_paused_by,
  provider.dispatch_resumed_at, provider.dispatch_resume_reason, provider.dispatch_resumed_by
