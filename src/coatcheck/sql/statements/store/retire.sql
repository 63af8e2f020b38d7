-- purpose: one page of retention: what is over loses its specification, its replies, its sources, and a history that nobody intervened in
-- guard: revision, under a lock that is not waited for: what somebody is writing is left for the next run
-- index: specifications_pkey, operations_pkey, history_pkey, incidents_pkey, dispatches_number, deliveries_pkey, snapshots_pkey
with
-- include: retirable
locked as materialized (
  select held.operation_id
  from coatcheck.operations as held
  join retirable using (operation_id)
  where held.revision = retirable.revision
  order by held.operation_id
  for no key update of held skip locked
),
-- what a person decided, and what went wrong, is told for as long as the money is
told as materialized (
  select locked.operation_id
  from locked
  where exists (
      select from coatcheck.history as said
      where said.operation_id = locked.operation_id
        and said.event in ('noted', 'adopted', 'proven_absent', 'redispatch_requested', 'redispatch_authorised', 'written_off', 'cancelled',
          'cancel_requested', 'reobserve_requested', 'redeliver_requested', 'message_resumed', 'orphan_resolved', 'retired'))
    or exists (select from coatcheck.incidents as noted where noted.operation_id = locked.operation_id)
),
written as (
  update coatcheck.operations as stored set revision = stored.revision + 1, updated_at = coatcheck.lease_now()
  from locked
  where stored.operation_id = locked.operation_id
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state
),
chronicle as (
  insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state, to_render_state,
    from_delivery_state, to_delivery_state, reason)
  select operation_id, revision, 'retired', %(actor)s::text, coatcheck.lease_now(), phase, phase, render_state, render_state,
    delivery_state, delivery_state, %(reason)s::text
  from written
),
-- this statement does not see the entry that it writes itself
entries as (
  delete from coatcheck.history as entry
  using locked
  where entry.operation_id = locked.operation_id and not exists (select from told where told.operation_id = locked.operation_id)
  returning entry.operation_id
),
replies as (
  update coatcheck.dispatches as sent set reply = null, marks_ms = null
  from locked
  where sent.operation_id = locked.operation_id and (sent.reply is not null or sent.marks_ms is not null)
),
sources as (
  update coatcheck.deliveries as made set source = ''
  from locked
  where made.operation_id = locked.operation_id and made.source <> ''
),
looks as (
  update coatcheck.snapshots as seen set outputs = '[]'
  from locked
  where seen.operation_id = locked.operation_id and seen.outputs <> '[]'
),
specifications as (
  delete from coatcheck.specifications as asked
  using locked
  where asked.operation_id = locked.operation_id
  returning octet_length(asked.specification_text) as bytes
)
select (select count(*) from page) as page_count, (select count(*) from chosen) as read_count,
  (select count(*) from specifications) as retired_count, (select count(*) from entries) as entry_count,
  (select coalesce(sum(bytes), 0) from specifications)::bigint as specification_bytes,
  (select page.operation_id from page order by page.operation_id desc limit 1) as last_id
