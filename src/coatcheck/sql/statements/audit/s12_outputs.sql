-- purpose: S12: every undelivered output of a render that succeeded has its lane, and the counters say what the outputs are
-- guard: none: reading decides nothing
-- index: operations_pkey, deliveries_pkey, outbox_pkey, snapshots_pkey
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.phase, kept.render_state, kept.output_count, kept.delivered_count, kept.failed_count
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
outputs as materialized (
  select made.operation_id, made.output_index, made.state
  from coatcheck.deliveries as made
  where made.operation_id > (select %(after)s::uuid) and made.operation_id <= (select %(upto)s::uuid)
),
lanes as materialized (
  select held.operation_id, held.lane
  from coatcheck.outbox as held
  where held.operation_id > (select %(after)s::uuid) and held.operation_id <= (select %(upto)s::uuid) and held.lane > 0
),
counted as (
  select outputs.operation_id, count(*) as output_count, count(*) filter (where outputs.state = 'delivered') as delivered_count,
    count(*) filter (where outputs.state = 'failed') as failed_count
  from outputs
  group by outputs.operation_id
)
select 'output_lane_missing' as kind, outputs.operation_id, chunk.tenant_id, null::uuid as dispatch_id,
  format('output %%s is %%s and has no lane', outputs.output_index, outputs.state) as detail
from outputs
join chunk using (operation_id)
left join lanes on lanes.operation_id = outputs.operation_id and lanes.lane = outputs.output_index + 1
where outputs.state <> 'delivered' and chunk.render_state = 'succeeded' and chunk.phase <> 'abandoned' and lanes.operation_id is null
union all
select 'lane_without_output', lanes.operation_id, chunk.tenant_id, null,
  format('lane %%s, and output %%s is %%s', lanes.lane, lanes.lane - 1, coalesce(outputs.state, 'not there'))
from lanes
join chunk using (operation_id)
left join outputs on outputs.operation_id = lanes.operation_id and outputs.output_index = lanes.lane - 1
where chunk.phase in ('accepted', 'submission_failed')
  and (chunk.render_state <> 'succeeded' or outputs.operation_id is null or outputs.state = 'delivered')
union all
select 'outputs_miscounted', chunk.operation_id, chunk.tenant_id, null,
  format('the record counts %%s outputs, %%s delivered and %%s failed, there are %%s, %%s and %%s', chunk.output_count,
    chunk.delivered_count, chunk.failed_count, coalesce(counted.output_count, 0), coalesce(counted.delivered_count, 0),
    coalesce(counted.failed_count, 0))
from chunk
left join counted using (operation_id)
where (chunk.output_count, chunk.delivered_count, chunk.failed_count)
  <> (coalesce(counted.output_count, 0), coalesce(counted.delivered_count, 0), coalesce(counted.failed_count, 0))
union all
select 'output_without_operation', outputs.operation_id, null, null,
  format('output %%s is %%s, and the operation is gone', outputs.output_index, outputs.state)
from outputs
left join chunk using (operation_id)
where chunk.operation_id is null
union all
select 'snapshot_without_operation', seen.operation_id, null, null, 'a snapshot, and the operation is gone'
from coatcheck.snapshots as seen
left join chunk using (operation_id)
where seen.operation_id > (select %(after)s::uuid) and seen.operation_id <= (select %(upto)s::uuid) and chunk.operation_id is null
