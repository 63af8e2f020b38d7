-- purpose: a worker's own account of itself, for stats and doctor
-- guard: none: no rule rests on it
-- index: workers_pkey
insert into coatcheck.workers as known (incarnation, version, roles, started_at, seen_at, stopped_at, stale,
  lease_renewal_failures_count, action_ms)
values (%(incarnation)s, %(version)s, %(roles)s::text[], coatcheck.lease_now(), coatcheck.lease_now(),
  case when %(stopped)s::boolean then coatcheck.lease_now() end, %(stale)s::jsonb, %(lease_renewal_failures_count)s,
  %(action_ms)s::jsonb)
on conflict (incarnation) do update set
  seen_at = excluded.seen_at,
  stopped_at = excluded.stopped_at,
  stale = excluded.stale,
  lease_renewal_failures_count = excluded.lease_renewal_failures_count,
  action_ms = excluded.action_ms
