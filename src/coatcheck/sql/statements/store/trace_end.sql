-- purpose: what the end of a POST, which somebody holds outside the database, has left behind: its evidence, and whose the job is that it names
-- guard: writes nothing; its lock waits for a save under way, and its commit is one that a standby must confirm, with all that it read
-- index: operations_pkey, dispatches_pkey, remote_jobs_pkey
with locked as materialized (
  select held.operation_id, held.revision
  from coatcheck.operations as held
  where held.operation_id = %(operation_id)s::uuid
  for no key update of held
),
-- as it must be for what was read before, and what is read here beside the lock, to be about the same revision
expected as materialized (
  select was.operation_id, was.revision
  from coatcheck.operations as was
  where was.operation_id = %(operation_id)s::uuid and was.revision = %(revision)s::bigint
),
-- the operation may be gone, and without a lock this commit would wait for nobody
confirmed as materialized (
  select pg_catalog.pg_logical_emit_message(true, 'coatcheck', '') as position
)
select locked.revision is distinct from expected.revision as is_outdated, ended.dispatch_id is not null as is_marked,
  case when ended.ended_at is not null then ended.outcome end as outcome,
  case when ended.ended_at is not null then ended.remote_job_id end as remote_job_id, job.operation_id as holder_id
from confirmed
left join locked on true
left join expected on true
left join coatcheck.dispatches as ended on ended.dispatch_id = %(dispatch_id)s::uuid
left join coatcheck.remote_jobs as job on job.account = %(account)s::text and job.remote_job_id = %(remote_job_id)s::text
