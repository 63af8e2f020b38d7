-- purpose: stop the looks of a provider's account until a person resumes them; a pause that began by itself becomes a person's
-- guard: claims count looks under this row's lock or see the pause, so none that begins after this leases a look; looks under way end as they do
-- index: accounts_pkey
-- an account that a worker of an older version made known has no row yet
insert into coatcheck.accounts as budget (account, observation_paused_at, observation_pause_reason, observation_paused_by)
select known.account, coatcheck.lease_now(), %(reason)s, %(actor)s
from coatcheck.providers as known
where known.name = %(name)s
on conflict (account) do update set
  observation_paused_at = coalesce(budget.observation_paused_at, coatcheck.lease_now()),
  observation_pause_reason = excluded.observation_pause_reason,
  observation_paused_by = excluded.observation_paused_by,
  observation_probe_at = null
