-- purpose: let a provider's account be looked at again; what was due meanwhile is due still
-- guard: none: looking is free
-- index: accounts_pkey
update coatcheck.accounts as budget set
  observation_paused_at = null,
  observation_pause_reason = null,
  observation_paused_by = null,
  observation_probe_at = null,
  observation_resumed_at = coatcheck.lease_now(),
  observation_resume_reason = %(reason)s,
  observation_resumed_by = %(actor)s,
  failed_look_count = 0,
  failed_probe_count = 0
where budget.account = (select known.account from coatcheck.providers as known where known.name = %(name)s)
