-- purpose: S5: each known remote job has one owner, and it is the operation that names it, in its account
-- guard: none: reading decides nothing
-- index: operations_pkey, remote_jobs_pkey, remote_jobs_operation_idx, dispatches_number, history_pkey
with chunk as materialized (
  select kept.operation_id, kept.tenant_id, kept.dispatch_id, kept.account, kept.remote_job_id
  from coatcheck.operations as kept
  where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
),
owners as materialized (
  select found.operation_id, found.dispatch_id, found.account, found.remote_job_id
  from coatcheck.remote_jobs as found
  where found.operation_id > (select %(after)s::uuid) and found.operation_id <= (select %(upto)s::uuid) and found.role = 'owner'
),
unowned as materialized (
  select chunk.operation_id, chunk.tenant_id, chunk.dispatch_id, chunk.account, chunk.remote_job_id
  from chunk
  left join owners on owners.operation_id = chunk.operation_id and owners.account = chunk.account
    and owners.remote_job_id = chunk.remote_job_id
  where chunk.remote_job_id is not null and owners.operation_id is null
)
select case when other.operation_id is null then 'owner_missing' else 'owned_by_another' end as kind, unowned.operation_id,
  unowned.tenant_id, unowned.dispatch_id,
  format('remote job %%s of account %%s is written down for %%s', unowned.remote_job_id, coalesce(unowned.account, '-'),
    coalesce(coatcheck.operation_text(other.operation_id), 'nobody')) as detail
from unowned
left join lateral (
  select found.operation_id
  from coatcheck.remote_jobs as found
  where found.account = unowned.account and found.remote_job_id = unowned.remote_job_id
    and found.operation_id <> unowned.operation_id
  limit 1
) as other on true
union all
select case when chunk.operation_id is null then 'owner_without_operation' else 'owner_differs' end, owners.operation_id,
  chunk.tenant_id, owners.dispatch_id,
  format('owns %%s of account %%s, and the operation %%s', owners.remote_job_id, owners.account, case
    when chunk.operation_id is null then 'is gone'
    else format('names %%s of account %%s', coalesce(chunk.remote_job_id, 'none'), coalesce(chunk.account, '-')) end)
from owners
left join chunk using (operation_id)
where (chunk.account, chunk.remote_job_id) is distinct from (owners.account, owners.remote_job_id)
union all
-- a reply named a job that another operation has: one of the two is wrong, until a person said which, or decided nevertheless
select 'job_disputed', kept.operation_id, chunk.tenant_id, kept.dispatch_id,
  format('a reply to dispatch %%s names %%s of account %%s, which is written down for %%s', kept.number, kept.remote_job_id, kept.account,
    coatcheck.operation_text(other.operation_id))
from coatcheck.dispatches as kept
join chunk using (operation_id)
join coatcheck.remote_jobs as other on other.account = kept.account and other.remote_job_id = kept.remote_job_id
  and other.operation_id <> kept.operation_id
where kept.operation_id > (select %(after)s::uuid) and kept.operation_id <= (select %(upto)s::uuid)
  and chunk.remote_job_id is distinct from kept.remote_job_id
  and not exists (
    select from coatcheck.history as said
    where said.operation_id = kept.operation_id
      and said.event in ('noted', 'adopted', 'proven_absent', 'redispatch_authorised', 'written_off')
      and said.revision > (
        select coalesce(max(heard.revision), 0) from coatcheck.history as heard
        where heard.operation_id = kept.operation_id and heard.dispatch_id = kept.dispatch_id
          and (heard.event in ('remote_id_owned', 'reply_kept') or heard.event like 'late\_%%')))
