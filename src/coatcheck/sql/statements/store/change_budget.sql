-- purpose: what all workers together may ask of an account; what is not given stays, and what is in flight is counted anew where its limit is given
-- guard: whoever gives that limit locked out every writer of dispatches, so nothing enters or leaves flight between the count and the row
-- index: accounts_pkey, operations_pkey
update coatcheck.accounts as budget set
  max_in_flight = case when %(sets_max_in_flight)s::boolean then %(max_in_flight)s::integer else budget.max_in_flight end,
  in_flight_count = case when %(sets_max_in_flight)s::boolean then (
      select count(*)
      from coatcheck.outbox as course
      join coatcheck.operations as operation using (operation_id)
      where course.lane = 0 and operation.account = budget.account and coatcheck.is_in_flight(operation.phase, operation.render_state))
    else budget.in_flight_count end,
  dispatches_per_s = case when %(sets_dispatches_per_s)s::boolean then %(dispatches_per_s)s::float8 else budget.dispatches_per_s end,
  looks_per_s = case when %(sets_looks_per_s)s::boolean then %(looks_per_s)s::float8 else budget.looks_per_s end,
  look_floor_s = case when %(sets_look_floor_s)s::boolean then %(look_floor_s)s::float8 else budget.look_floor_s end
where budget.account = (select known.account from coatcheck.providers as known where known.name = %(name)s::text)
