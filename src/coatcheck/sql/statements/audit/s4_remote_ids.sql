-- purpose: S4: a remote job's id is written once and never given up, and no lane or snapshot speaks of another
-- guard: none: reading decides nothing
-- index: operations_pkey, history_pkey, outbox_pkey, snapshots_pkey
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.dispatch_id, kept.remote_job_id
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
known as (
  select entry.operation_id,
    count(*) filter (where coalesce(entry.from_phase, '') not in ('accepted', 'submission_failed')
      and entry.to_phase in ('accepted', 'submission_failed')) as gained_count,
    count(*) filter (where entry.from_phase in ('accepted', 'submission_failed')
      and entry.to_phase not in (entry.from_phase, 'abandoned')) as lost_count,
    -- retention took what was before that entry
    bool_or(entry.event = 'retired') as is_shortened
  from coatcheck.history as entry
  where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid)
  group by entry.operation_id
)
select case
    when known.gained_count > 1 then 'accepted_twice'
    when known.lost_count > 0 or chunk.remote_job_id is null then 'remote_id_lost'
    else 'remote_id_unexplained' end as kind,
  chunk.operation_id, chunk.tenant_id, chunk.dispatch_id,
  format('a remote job became known %%s times and was given up %%s times; the operation names %%s', coalesce(known.gained_count, 0),
    coalesce(known.lost_count, 0), coalesce(chunk.remote_job_id, 'none')) as detail
from chunk
left join known using (operation_id)
where known.lost_count > 0 or known.gained_count > 1
  or (coalesce(known.gained_count, 0) <> (chunk.remote_job_id is not null)::integer and known.is_shortened is not true)
union all
select 'lane_of_another_job', chunk.operation_id, chunk.tenant_id, chunk.dispatch_id,
  format('lane %%s expects %%s, the operation names %%s', held.lane, held.expected_remote_job_id, coalesce(chunk.remote_job_id, 'none'))
from chunk
join coatcheck.outbox as held on held.operation_id = chunk.operation_id
where held.operation_id > (select %(after)s::uuid) and held.operation_id <= (select %(upto)s::uuid)
  and held.expected_remote_job_id is not null and held.expected_remote_job_id is distinct from chunk.remote_job_id
union all
select 'snapshot_of_another_job', chunk.operation_id, chunk.tenant_id, chunk.dispatch_id,
  format('the snapshot is of %%s, the operation names %%s', seen.remote_job_id, coalesce(chunk.remote_job_id, 'none'))
from chunk
join coatcheck.snapshots as seen on seen.operation_id = chunk.operation_id
where seen.operation_id > (select %(after)s::uuid) and seen.operation_id <= (select %(upto)s::uuid)
  and seen.remote_job_id is distinct from chunk.remote_job_id
