-- purpose: S2: an authorisation is spent at most once, only under one that was given, and each beyond the first by a person
-- guard: none: reading decides nothing
-- index: operations_pkey, dispatches_number, history_pkey, remote_jobs_operation_idx
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.authorisation
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
sent as materialized (
  select kept.operation_id, kept.dispatch_id, kept.number, kept.authorisation, kept.displaced,
    kept.outcome not in ('not_sent', 'throttled', 'proven_absent') as spends
  from coatcheck.dispatches as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
decisions as (
  select entry.operation_id, count(*) as decision_count
  from coatcheck.history as entry
  where entry.operation_id > (select %(after)s::uuid) and entry.operation_id <= (select %(upto)s::uuid)
    and entry.event in ('proven_absent', 'redispatch_authorised')
  group by entry.operation_id
),
spent as (
  select sent.operation_id, sent.authorisation, count(*) as dispatch_count, max(sent.number) as last_number
  from sent
  where sent.spends and not sent.displaced
  group by sent.operation_id, sent.authorisation
  having count(*) > 1
)
select 'spent_twice' as kind, sent.operation_id, chunk.tenant_id, sent.dispatch_id,
  format('authorisation %%s was spent by %%s dispatches, number %%s the last', spent.authorisation, spent.dispatch_count,
    spent.last_number) as detail
from spent
join sent on sent.operation_id = spent.operation_id and sent.number = spent.last_number
left join chunk on chunk.operation_id = spent.operation_id
union all
select 'displaced', sent.operation_id, chunk.tenant_id, sent.dispatch_id,
  format('dispatch %%s was sent under authorisation %%s, which %%s', sent.number, sent.authorisation,
    case when chunk.operation_id is null then 'went with its operation' else 'another dispatch holds' end)
from sent
left join chunk using (operation_id)
where sent.displaced and sent.spends and not exists (
  select from coatcheck.remote_jobs as found
  where found.operation_id = sent.operation_id and found.dispatch_id = sent.dispatch_id and found.resolved_at is not null)
  -- a person said what they found out, and nothing was heard of it since; a job of it stays listed as an orphan
  and not exists (
    select from coatcheck.history as said
    where said.operation_id = sent.operation_id and said.event in ('noted', 'written_off')
      and said.revision > (
        select coalesce(max(heard.revision), 0) from coatcheck.history as heard
        where heard.operation_id = sent.operation_id and heard.dispatch_id = sent.dispatch_id
          and (heard.event in ('remote_id_owned', 'reply_kept') or heard.event like 'late\_%%')))
union all
select 'unauthorised', sent.operation_id, chunk.tenant_id, sent.dispatch_id,
  format('dispatch %%s names authorisation %%s, the operation has %%s', sent.number, sent.authorisation, chunk.authorisation)
from sent
join chunk using (operation_id)
where sent.authorisation > chunk.authorisation
union all
select 'authorisation_unexplained', chunk.operation_id, chunk.tenant_id, null,
  format('authorisation %%s after %%s decisions of a person', chunk.authorisation, coalesce(decisions.decision_count, 0))
from chunk
left join decisions using (operation_id)
where chunk.authorisation <> 1 + coalesce(decisions.decision_count, 0)
