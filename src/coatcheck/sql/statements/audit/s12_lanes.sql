-- purpose: S12: what is not closed has its course, aimed at what its phase calls for, and what is closed has none
-- guard: none: reading decides nothing
-- index: operations_pkey, outbox_pkey
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.provider, kept.account, kept.phase, kept.render_state, kept.final_at,
    case kept.phase when 'prepared' then 'dispatch' when 'uncertain' then 'reconcile' when 'accepted' then 'observe'
      when 'submission_failed' then 'observe' end as action
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
lanes as materialized (
  select held.operation_id, held.lane, held.action, held.provider, held.account
  from coatcheck.outbox as held
  where held.operation_id > (select %(after)s::uuid) and held.operation_id <= (select %(upto)s::uuid)
)
select 'course_missing' as kind, chunk.operation_id, chunk.tenant_id, null::uuid as dispatch_id,
  format('%%s, %%s, and no lane 0', chunk.phase, chunk.render_state) as detail
from chunk
left join lanes on lanes.operation_id = chunk.operation_id and lanes.lane = 0
where lanes.operation_id is null and (chunk.phase in ('prepared', 'dispatching', 'uncertain')
  or (chunk.phase in ('accepted', 'submission_failed') and chunk.final_at is null))
union all
select 'lane_of_closed', chunk.operation_id, chunk.tenant_id, null,
  format('%%s, and lane %%s is aimed at %%s', chunk.phase, lanes.lane, lanes.action)
from chunk
join lanes using (operation_id)
where chunk.phase in ('rejected', 'cancelled', 'abandoned')
union all
select 'course_misaimed', chunk.operation_id, chunk.tenant_id, null,
  format('%%s, and lane 0 is aimed at %%s', chunk.phase, lanes.action)
from chunk
join lanes using (operation_id)
where lanes.lane = 0 and lanes.action <> chunk.action
union all
select 'lane_elsewhere', chunk.operation_id, chunk.tenant_id, null,
  format('lane %%s is for provider %%s, account %%s, the operation for %%s, %%s', lanes.lane, lanes.provider, lanes.account,
    chunk.provider, coalesce(chunk.account, '-'))
from chunk
join lanes using (operation_id)
where lanes.provider <> chunk.provider or lanes.account <> coalesce(chunk.account, '')
union all
select 'lane_without_operation', lanes.operation_id, null, null,
  format('lane %%s is aimed at %%s, and the operation is gone', lanes.lane, lanes.action)
from lanes
left join chunk using (operation_id)
where chunk.operation_id is null
