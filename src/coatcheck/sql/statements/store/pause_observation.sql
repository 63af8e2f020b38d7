-- purpose: stop the looks of a provider's account until a person resumes them; a pause that began by itself becomes a person's
-- guard: claims count looks under this row's lock or see the pause, so no look is leased after this; looks under way end as they do
-- index: accounts_pkey
update coatcheck.accounts as budget set
  observation_paused_at = coalesce(budget.observation_paused_at, coatcheck.lease_now()),
  observation_pause_reason = %(reason)s,
  observation_paused_by = %(actor)s,
  observation_probe_at = null
where budget.account = (select known.account from coatcheck.providers as known where known.name = %(name)s)
