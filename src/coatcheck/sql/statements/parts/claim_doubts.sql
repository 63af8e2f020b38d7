-- purpose: dispatches whose lease ended, of any provider, and doubt that can be looked up here
-- guard: none of its own
-- index: outbox_doubt_idx
doubtful as materialized (
  select held.operation_id, held.lane, held.account, held.wait_reason is not distinct from 'lookup' as is_look, held.visible_at
  from coatcheck.outbox as held
  where held.action = 'reconcile' and held.parked_at is null and held.visible_at <= coatcheck.due_now()
    -- the end of a lease needs no adapter; asking a service needs its account's credential and leave for a look
    and (held.wait_reason is distinct from 'lookup' or exists (
      select
      from configured
      left join budgets using (account)
      where configured.provider = held.provider and configured.account = held.account
        and coalesce(budgets.look_leave > 0, true)))
    and not exists (select from suspect)
  order by held.visible_at
  limit %(doubts)s::integer
  for no key update skip locked
),
