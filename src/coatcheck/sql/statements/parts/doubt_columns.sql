-- purpose: what is known of the dispatch that an operation stands on, and what its course waits for, as the value `Doubt` has it
-- guard: none: reading decides nothing
-- index: none
  dispatch.number, dispatch.authorisation as used_authorisation, dispatch.worker, dispatch.begun_at, dispatch.quiescent_at,
  dispatch.stage, dispatch.cause, dispatch.http_status, dispatch.candidate_id,
  case when dispatch.settled_at is null then dispatch.held end as held, dispatch.unit as held_unit, course.park_reason
