-- purpose: one history row for each revision in `written`, with what `judged` knew and the message's metadata
-- guard: only operations that this statement wrote; the primary key refuses a second row for a revision
-- index: history_pkey
chronicle as (
  insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state,
    to_render_state, from_delivery_state, to_delivery_state, reason, dispatch_id, action, lease_count, leased_at)
  select written.operation_id, written.revision, judged.event, judged.actor, coatcheck.lease_now(), judged.from_phase,
    written.phase, judged.from_render_state, written.render_state, judged.from_delivery_state, written.delivery_state,
    judged.reason, judged.dispatch_id, message.action, message.lease_count, message.leased_at
  from written
  join judged using (operation_id)
  left join lane_locks as message on message.operation_id = written.operation_id and message.lane = judged.message_lane
),
