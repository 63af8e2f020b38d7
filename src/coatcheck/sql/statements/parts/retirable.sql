-- purpose: the next operations that still have their specification, and which of them are over for long enough and free of open questions
-- guard: reading only; what writes after it compares the revision again under its lock
-- index: specifications_pkey, operations_pkey, outbox_pkey, dispatches_number, remote_jobs_operation_idx
page as materialized (
  select asked.operation_id
  from coatcheck.specifications as asked
  -- an id begins with the milliseconds at which it was made: what is younger is not read
  where asked.operation_id > %(after)s::uuid and asked.operation_id < (
    select (lpad(to_hex(greatest(
        floor(extract(epoch from coatcheck.due_now() - make_interval(days => %(days)s::integer)) * 1000)::bigint, 0)),
      12, '0') || repeat('0', 20))::uuid)
  order by asked.operation_id
  limit %(size)s::integer
),
chosen as materialized (
  select kept.operation_id, kept.revision, kept.phase, kept.final_at, kept.updated_at
  from page
  join coatcheck.operations as kept using (operation_id)
  where %(tenant_id)s::text is null or kept.tenant_id = %(tenant_id)s::text
),
retirable as materialized (
  select kept.operation_id, kept.revision
  from chosen as kept
  where kept.updated_at < coatcheck.due_now() - make_interval(days => %(days)s::integer)
    and (kept.phase in ('rejected', 'cancelled', 'abandoned')
      or (kept.phase in ('accepted', 'submission_failed') and kept.final_at is not null))
    -- whatever is owed has a lane, and what waits for a person has one, too
    and not exists (select from coatcheck.outbox as owed where owed.operation_id = kept.operation_id)
    and not exists (
      select from coatcheck.dispatches as sent
      where sent.operation_id = kept.operation_id and (sent.settled_at is null or sent.displaced))
    and not exists (
      select from coatcheck.remote_jobs as found
      where found.operation_id = kept.operation_id and found.role = 'orphan' and found.resolved_at is null)
),
