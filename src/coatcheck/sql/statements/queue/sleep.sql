-- purpose: tell enqueue that a worker sleeps, so that it notifies
-- guard: the later of two announcements stays
-- index: wake_ups_pkey
update coatcheck.wake_ups set sleeping_until = coatcheck.lease_now() + make_interval(secs => %(sleep_s)s::float8)
where only_row and sleeping_until < coatcheck.lease_now() + make_interval(secs => %(sleep_s)s::float8)
