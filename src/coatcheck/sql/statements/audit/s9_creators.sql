-- purpose: S9: nothing but a dispatch message in the hands of a worker that dispatches ever led to a POST
-- guard: none: reading decides nothing
-- index: history_pkey, operations_pkey, workers_pkey
with marks as materialized (
  select entry.operation_id, entry.revision, entry.event, entry.actor, entry.from_phase, entry.dispatch_id, entry.action
  from coatcheck.history as entry
  where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid)
    and entry.to_phase = 'dispatching' and entry.from_phase is distinct from 'dispatching'
)
select case
    when marks.event <> 'dispatch_marked' or marks.from_phase is distinct from 'prepared' then 'dispatching_without_mark'
    when marks.action <> 'dispatch' then 'marked_by_another_action'
    else 'marked_by_another_role' end as kind,
  marks.operation_id, kept.tenant_id, marks.dispatch_id,
  format('revision %%s: %%s in %%s, by a message to %%s, of worker %%s%%s', marks.revision, marks.event,
    coalesce(marks.from_phase, 'nothing'), coalesce(marks.action, '-'), marks.actor,
    coalesce(' for ' || array_to_string(known.roles, ', '), '')) as detail
from marks
left join coatcheck.operations as kept on kept.operation_id = marks.operation_id
  and kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
left join coatcheck.workers as known on known.incarnation = marks.actor
where marks.event <> 'dispatch_marked' or marks.from_phase is distinct from 'prepared' or marks.action <> 'dispatch'
  or not 'dispatch' = any(known.roles)
