-- purpose: the end of a batch of deliveries: stored, failed for good, or in need of a fresh source
-- guard: this output is not delivered yet; counters under the operation's lock decide the delivery state, rows are never counted
-- index: operations_pkey, deliveries_pkey, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(event)s::text[], %(output_index)s::smallint[], %(result)s::text[], %(uri)s::text[],
      %(sha256)s::text[], %(bytes)s::bigint[], %(sniffed_type)s::text[], %(cause)s::text[])
    as i(operation_id, event, output_index, result, uri, sha256, bytes, sniffed_type, cause)
),
locked as materialized (
  select held.operation_id, held.phase, held.render_state, held.delivery_state, held.dispatch_id, held.delivered_count,
    held.failed_count
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
outputs as materialized (
  select held.operation_id, held.output_index, held.state
  from coatcheck.deliveries as held
  join input using (operation_id, output_index)
  where held.operation_id in (select operation_id from locked)
  order by held.operation_id, held.output_index
  for no key update of held
),
judged as materialized (
  select input.*, %(worker)s::text as actor, input.cause as reason, (input.output_index + 1)::smallint as message_lane,
    locked.dispatch_id, locked.phase as from_phase, locked.render_state as from_render_state,
    locked.delivery_state as from_delivery_state, outputs.state as from_state,
    coalesce(outputs.state <> 'delivered' and locked.phase in ('accepted', 'submission_failed')
      and locked.render_state = 'succeeded', false) as applies,
    case input.result when 'stored' then 'delivered' when 'failed' then 'failed' else outputs.state end as to_state
  from input
  left join locked using (operation_id)
  left join outputs using (operation_id, output_index)
),
results as (
  update coatcheck.deliveries as held set
    state = judged.to_state,
    uri = judged.uri,
    sha256 = judged.sha256,
    bytes = judged.bytes,
    sniffed_type = judged.sniffed_type,
    cause = judged.cause,
    updated_at = coatcheck.lease_now()
  from judged
  where judged.applies and held.operation_id = judged.operation_id and held.output_index = judged.output_index
),
written as (
  update coatcheck.operations as stored set
    delivered_count = tally.delivered,
    failed_count = tally.failed,
    delivery_state = case
      when tally.delivered = stored.output_count then 'delivered'
      when tally.delivered + tally.failed = stored.output_count then 'failed'
      else 'pending' end,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  join locked using (operation_id)
  cross join lateral (
    select locked.delivered_count + (judged.to_state = 'delivered')::integer as delivered,
      locked.failed_count - (judged.from_state = 'failed')::integer + (judged.to_state = 'failed')::integer as failed) as tally
  where judged.applies and stored.operation_id = judged.operation_id
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.remote_job_id, stored.tenant_id, stored.priority, stored.dispatch_by_at
),
-- include: lane_changes
-- include: lanes
-- include: chronicle
-- an expired source needs a look; one that is being made right now is left alone
looks as (
  insert into coatcheck.outbox as held (operation_id, lane, action, provider, account, expected_revision, expected_remote_job_id,
    visible_at, wait_reason, wait_since_at, wait_count, tenant_id, precedence)
  select written.operation_id, 0, 'observe', written.provider, written.account, written.revision, written.remote_job_id, clock.at,
    'source_expired', clock.at, 1, written.tenant_id, -written.priority
  from written
  join lane_changes as change on change.operation_id = written.operation_id and change.looks
  cross join lateral (select coatcheck.lease_now() as at where (select count(*) from lane_locks) >= 0) as clock
  order by written.operation_id
  on conflict (operation_id, lane) do update set visible_at = excluded.visible_at, lease_token = nextval('coatcheck.lease_tokens'),
    expected_revision = excluded.expected_revision
    where held.action = 'observe' and held.leased_by is null and held.parked_at is null
)
select judged.operation_id, case when judged.applies then 'applied' else 'stale' end as status, written.revision
from judged
left join written using (operation_id)
