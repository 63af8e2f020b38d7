-- purpose: S1: every dispatch has one mark, its instants are in order, and none is missing from its operation
-- guard: none: reading decides nothing
-- index: operations_pkey, dispatches_number, history_pkey, incidents_pkey
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.dispatch_id, kept.dispatch_count
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
marks as materialized (
  select entry.operation_id, entry.dispatch_id, count(*) as mark_count
  from coatcheck.history as entry
  where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid) and entry.event = 'dispatch_marked'
  group by entry.operation_id, entry.dispatch_id
),
-- a row that a failover lost was written again from its reply, and its mark's history stayed lost
vanished as materialized (
  select noted.operation_id, noted.count as row_count
  from coatcheck.incidents as noted
  where noted.operation_id > (select %(after)s::uuid) and noted.operation_id <= (select %(upto)s::uuid) and noted.kind = 'dispatch_vanished'
),
-- retention took the history of these before that entry
shortened as materialized (
  select entry.operation_id
  from coatcheck.history as entry
  where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid) and entry.event = 'retired'
),
sent as materialized (
  select kept.operation_id, kept.dispatch_id, kept.number, kept.displaced, kept.begun_at, kept.send_by_at, kept.quiescent_at,
    kept.ended_at, coalesce(marks.mark_count, 0) as mark_count,
    count(*) filter (where marks.mark_count is null) over (partition by kept.operation_id) as unmarked_count
  from coatcheck.dispatches as kept
  left join marks on marks.operation_id = kept.operation_id and marks.dispatch_id = kept.dispatch_id
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
counted as (
  select chunk.operation_id, chunk.tenant_id, chunk.dispatch_id, chunk.dispatch_count, count(sent.dispatch_id) as row_count,
    coalesce(max(sent.number), 0) as last_number, coalesce(bool_or(sent.dispatch_id = chunk.dispatch_id), false) as has_last
  from chunk
  left join sent using (operation_id)
  group by chunk.operation_id, chunk.tenant_id, chunk.dispatch_id, chunk.dispatch_count
)
select 'mark_missing' as kind, sent.operation_id, chunk.tenant_id, sent.dispatch_id,
  format('dispatch %%s has no dispatch_marked in the history', sent.number) as detail
from sent
left join chunk using (operation_id)
left join vanished using (operation_id)
where sent.mark_count = 0 and sent.unmarked_count > coalesce(vanished.row_count, 0)
  and not exists (select from shortened where shortened.operation_id = sent.operation_id)
union all
select 'marked_twice', sent.operation_id, chunk.tenant_id, sent.dispatch_id,
  format('dispatch %%s was marked %%s times', sent.number, sent.mark_count)
from sent
left join chunk using (operation_id)
where sent.mark_count > 1
union all
select 'instants_disordered', sent.operation_id, chunk.tenant_id, sent.dispatch_id,
  format('dispatch %%s: begun_at %%s, send_by_at %%s, ended_at %%s, quiescent_at %%s', sent.number, sent.begun_at, sent.send_by_at,
    coalesce(sent.ended_at::text, '-'), sent.quiescent_at)
from sent
left join chunk using (operation_id)
where sent.send_by_at < sent.begun_at or sent.quiescent_at < sent.begun_at or sent.ended_at < sent.begun_at
  or (sent.ended_at is null and sent.quiescent_at < sent.send_by_at)
union all
select 'dispatch_missing', counted.operation_id, counted.tenant_id, counted.dispatch_id,
  format('dispatch_count is %%s and there are %%s dispatches up to number %%s%%s', counted.dispatch_count, counted.row_count,
    counted.last_number, case when counted.dispatch_id is null or counted.has_last then '' else ', the last not among them' end)
from counted
left join vanished using (operation_id)
where counted.dispatch_count <> counted.last_number
  or (counted.row_count <> counted.dispatch_count and vanished.operation_id is null)
  or (counted.dispatch_id is not null and not counted.has_last)
union all
select 'dispatch_without_operation', sent.operation_id, null, sent.dispatch_id,
  format('dispatch %%s belongs to no operation', sent.number)
from sent
left join chunk using (operation_id)
where chunk.operation_id is null and not sent.displaced
