-- purpose: what all workers together may ask of an account; what is not given stays, and what is in flight is counted anew where its limit is given
-- guard: whoever gives that limit locked out every writer of dispatches, so nothing enters or leaves flight between the count and the row
-- index: accounts_pkey, operations_pkey
-- an account that a worker of an older version made known has no row yet
insert into coatcheck.accounts as budget (account, max_in_flight, in_flight_count, dispatches_per_s, looks_per_s, look_floor_s)
select known.account, %(max_in_flight)s::integer,
  case when %(sets_max_in_flight)s::boolean then (
      select count(*)
      from coatcheck.outbox as course
      join coatcheck.operations as operation using (operation_id)
      where course.lane = 0 and operation.account = known.account and coatcheck.is_in_flight(operation.phase, operation.render_state))
    else 0 end,
  %(dispatches_per_s)s::float8, %(looks_per_s)s::float8, %(look_floor_s)s::float8
from coatcheck.providers as known
where known.name = %(name)s::text
on conflict (account) do update set
  max_in_flight = case when %(sets_max_in_flight)s::boolean then excluded.max_in_flight else budget.max_in_flight end,
  in_flight_count = case when %(sets_max_in_flight)s::boolean then excluded.in_flight_count else budget.in_flight_count end,
  dispatches_per_s = case when %(sets_dispatches_per_s)s::boolean then excluded.dispatches_per_s else budget.dispatches_per_s end,
  -- what is used up is so many requests, at the new rate as at the old one
  dispatch_turn_at = case when %(sets_dispatches_per_s)s::boolean
    then coatcheck.due_now() + (budget.dispatch_turn_at - coatcheck.due_now()) * (budget.dispatches_per_s / excluded.dispatches_per_s)
    else budget.dispatch_turn_at end,
  looks_per_s = case when %(sets_looks_per_s)s::boolean then excluded.looks_per_s else budget.looks_per_s end,
  look_turn_at = case when %(sets_looks_per_s)s::boolean
    then coatcheck.due_now() + (budget.look_turn_at - coatcheck.due_now()) * (budget.looks_per_s / excluded.looks_per_s)
    else budget.look_turn_at end,
  look_floor_s = case when %(sets_look_floor_s)s::boolean then excluded.look_floor_s else budget.look_floor_s end
