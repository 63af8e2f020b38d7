-- purpose: S7: revisions are 0, 1, 2, ... with one entry each, each begins where the former ended, and the record is the last one
-- guard: none: reading decides nothing
-- index: operations_pkey, history_pkey
-- where retention took the first ones, its own entry is the first that is left
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.revision, kept.phase, kept.render_state, kept.delivery_state
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
entries as materialized (
  select entry.operation_id, entry.revision, entry.event, entry.to_phase, entry.to_render_state, entry.to_delivery_state,
    entry.from_phase is not distinct from lag(entry.to_phase) over course
      and entry.from_render_state is not distinct from lag(entry.to_render_state) over course
      and entry.from_delivery_state is not distinct from lag(entry.to_delivery_state) over course as follows,
    entry.event = 'retired' and lag(entry.revision) over course is null as is_first_left
  from coatcheck.history as entry
  where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid)
  window course as (partition by entry.operation_id order by entry.revision)
),
counted as materialized (
  select entries.operation_id, count(*) as entry_count, min(entries.revision) as first_revision, max(entries.revision) as last_revision,
    bool_or(entries.is_first_left) as is_shortened
  from entries
  group by entries.operation_id
)
select case when chunk.operation_id is null then 'history_without_operation' else 'revision_missing' end as kind,
  coalesce(chunk.operation_id, counted.operation_id) as operation_id, chunk.tenant_id, null::uuid as dispatch_id,
  format('%%s entries of history from %%s to %%s, and the operation is %%s', coalesce(counted.entry_count, 0),
    coalesce(counted.first_revision::text, '-'), coalesce(counted.last_revision::text, '-'),
    coalesce('at revision ' || chunk.revision, 'gone')) as detail
from chunk
full join counted using (operation_id)
where chunk.operation_id is null or counted.operation_id is null or counted.last_revision <> chunk.revision
  or counted.entry_count <> chunk.revision + 1 - counted.first_revision
  or (counted.first_revision <> 0 and not counted.is_shortened)
union all
select 'history_broken', entries.operation_id, chunk.tenant_id, null,
  format('revision %%s, %%s, does not begin where the one before it ended', entries.revision, entries.event)
from entries
join chunk using (operation_id)
where not entries.follows and not entries.is_first_left
union all
select 'record_differs', chunk.operation_id, chunk.tenant_id, null,
  format('revision %%s says %%s, %%s, %%s, the record %%s, %%s, %%s', entries.revision, entries.to_phase, entries.to_render_state,
    entries.to_delivery_state, chunk.phase, chunk.render_state, chunk.delivery_state)
from chunk
join entries using (operation_id, revision)
where (chunk.phase, chunk.render_state, chunk.delivery_state)
  <> (entries.to_phase, entries.to_render_state, entries.to_delivery_state)
