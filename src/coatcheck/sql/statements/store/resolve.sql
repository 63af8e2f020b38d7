-- purpose: what a batch of steps of one kind, whose commit nobody saw, has left behind; no row in `history` or `deliveries`: nothing
-- guard: writes nothing, but its locks wait for a commit under way and make it a commit of its own, which a standby must confirm, too
-- index: operations_pkey, dispatches_number, history_pkey, deliveries_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(dispatch_id)s::uuid[], %(expected_revision)s::bigint[], %(event)s::text[],
      %(actor)s::text[], %(reason)s::text[], %(output_index)s::smallint[], %(uri)s::text[], %(sha256)s::text[])
    as i(operation_id, dispatch_id, expected_revision, event, actor, reason, output_index, uri, sha256)
),
locked as materialized (
  select held.operation_id, held.revision
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
-- the same rows as this statement's snapshot has them: a later revision under the lock makes all else that is read here too old
seen as materialized (
  select was.operation_id, was.revision
  from coatcheck.operations as was
  where was.operation_id in (select operation_id from input)
)
select input.operation_id, locked.revision is distinct from seen.revision as is_outdated,
  coalesce(marked.revision, followed.revision, concluded.revision, delivered.revision) as revision, concluded.event
from input
left join locked using (operation_id)
left join seen using (operation_id)
left join lateral (
  select input.expected_revision + 1 as revision
  from coatcheck.dispatches as made
  where made.dispatch_id = input.dispatch_id and made.operation_id = input.operation_id) as marked on %(kind)s::text = 'mark'
-- the one step that may follow the revision it was decided upon
left join lateral (
  select told.revision
  from coatcheck.history as told
  where told.operation_id = input.operation_id and told.revision = input.expected_revision + 1 and told.event = input.event
    and told.actor = input.actor and told.reason is not distinct from input.reason) as followed on %(kind)s::text = 'follow'
-- a conclusion is guarded by its dispatch: whatever the revision, its own row names that and this worker
left join lateral (
  select told.revision, told.event
  from coatcheck.history as told
  where told.operation_id = input.operation_id and told.dispatch_id = input.dispatch_id and told.actor = input.actor
    and told.event in (input.event, 'remote_id_owned')
  order by told.revision desc
  limit 1) as concluded on %(kind)s::text = 'conclude'
left join lateral (
  select locked.revision
  from coatcheck.deliveries as kept
  where kept.operation_id = input.operation_id and kept.output_index = input.output_index and kept.state = 'delivered'
    and kept.uri = input.uri and kept.sha256 = input.sha256) as delivered on %(kind)s::text = 'deliver'
