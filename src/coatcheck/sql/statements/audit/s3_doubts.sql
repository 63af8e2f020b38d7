-- purpose: S3: from dispatching only a reply leads elsewhere than to uncertain, and the end of a lease will find each dispatch
-- guard: none: reading decides nothing
-- index: operations_pkey, history_pkey, outbox_pkey, dispatches_number
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.phase, kept.dispatch_id
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
)
select case entry.from_phase when 'dispatching' then 'left_dispatching' else 'left_uncertain' end as kind, entry.operation_id,
  chunk.tenant_id, entry.dispatch_id,
  format('revision %%s: %%s led from %%s to %%s by %%s', entry.revision, entry.event, entry.from_phase, entry.to_phase, entry.actor)
    as detail
from coatcheck.history as entry
left join chunk using (operation_id)
where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid)
  and entry.from_phase in ('dispatching', 'uncertain') and entry.to_phase not in ('uncertain', entry.from_phase)
  and (entry.actor = 'sweep' or entry.event not in (
    'generation_accepted', 'submission_failed', 'generation_rejected', 'throttled', 'throttled_and_withdrawn', 'not_sent',
    'not_sent_and_withdrawn'))
  -- out of doubt a person leads as well
  and (entry.from_phase = 'dispatching' or entry.event not in (
    'adopted', 'proven_absent', 'redispatch_authorised', 'written_off'))
union all
select 'lease_end_unseen', chunk.operation_id, chunk.tenant_id, chunk.dispatch_id,
  format('dispatching, and lane 0 is aimed at %%s%%s', held.action, coalesce(', parked for ' || held.park_reason, ''))
from chunk
join coatcheck.outbox as held on held.operation_id = chunk.operation_id and held.lane = 0
where chunk.phase = 'dispatching' and (held.action <> 'reconcile' or held.parked_at is not null)
union all
select 'open_left_behind', kept.operation_id, chunk.tenant_id, kept.dispatch_id,
  format('dispatch %%s is open, and the operation is %%s%%s', kept.number, chunk.phase,
    case when chunk.phase = 'dispatching' then ' under another' else '' end)
from coatcheck.dispatches as kept
join chunk using (operation_id)
where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
  and kept.outcome = 'open' and (chunk.phase <> 'dispatching' or chunk.dispatch_id <> kept.dispatch_id)
