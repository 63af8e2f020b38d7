-- purpose: the history of one operation, for the person who looks at it
-- guard: none: the caller has checked the tenant
-- index: history_pkey
select kept.operation_id, kept.revision, kept.event, kept.actor, kept.at, kept.from_phase, kept.to_phase,
  kept.from_render_state, kept.to_render_state, kept.from_delivery_state, kept.to_delivery_state, kept.reason,
  kept.dispatch_id, kept.action, kept.lease_count, kept.leased_at
from coatcheck.history as kept
where kept.operation_id = %(operation_id)s::uuid
order by kept.revision
