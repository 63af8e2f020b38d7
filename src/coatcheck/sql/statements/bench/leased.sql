-- purpose: who has a measurement's operations in hand, whether in doubt or not, and until when
-- guard: none: reading decides nothing
-- index: none: as many lanes as were asked for
select count(*) filter (where lane.action = 'observe' and lane.leased_by = %(worker)s::text) as watched_count,
  count(*) filter (where lane.action = 'reconcile' and lane.parked_at is null) as sending_count,
  count(*) filter (where lane.park_reason = 'uncertain') as doubt_count,
  extract(epoch from max(lane.visible_at) filter (where lane.action = 'observe') - coatcheck.lease_now())::float8 as looks_end_s,
  extract(epoch from max(lane.visible_at) filter (where lane.action = 'reconcile' and lane.parked_at is null)
    - coatcheck.lease_now())::float8 as posts_end_s
from coatcheck.outbox as lane
