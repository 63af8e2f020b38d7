-- purpose: what dispatches hold and cost, per tenant or provider and unit, as of one instant
-- guard: none: reading decides nothing; every dispatch counts in exactly one row, one whose operation is gone under no name
-- index: remote_jobs_orphans_idx; all dispatches of the period are read
with orphans as (
  select found.dispatch_id, count(*) as orphan_count
  from coatcheck.remote_jobs as found
  where found.role = 'orphan'
  group by found.dispatch_id
),
sent as (
  select case %(by)s::text when 'tenant' then operation.tenant_id else operation.provider end as name, dispatch.unit, dispatch.held,
    dispatch.charged, dispatch.basis, dispatch.settled_at is null as is_open, coalesce(orphans.orphan_count, 0) as orphan_count,
    coalesce(operation.dispatch_id = dispatch.dispatch_id and operation.remote_job_id is not null, false) as is_owner,
    coalesce(operation.dispatch_id = dispatch.dispatch_id and operation.phase = 'uncertain', false) as is_uncertain,
    -- what came back of the service's own figure, which is charged without it already
    case when operation.dispatch_id = dispatch.dispatch_id and dispatch.basis = 'service'
        and coalesce(seen.unit, dispatch.unit) = dispatch.unit
      then least(seen.refunded, seen.charged) end as refunded
  from coatcheck.dispatches as dispatch
  left join coatcheck.operations as operation using (operation_id)
  left join coatcheck.snapshots as seen using (operation_id)
  left join orphans on orphans.dispatch_id = dispatch.dispatch_id
  where dispatch.begun_at >= coalesce(%(begins_at)s::timestamptz, '-infinity')
    and dispatch.begun_at < coalesce(%(ends_at)s::timestamptz, 'infinity')
)
select sent.name, sent.unit, count(*) as dispatch_count, coalesce(sum(sent.charged), 0) as charged,
  coalesce(sum(sent.charged) filter (where sent.basis = 'service'), 0) as charged_by_service,
  coalesce(sum(sent.charged) filter (where sent.basis = 'assumed'), 0) as charged_as_assumed,
  coalesce(sum(sent.refunded), 0) as refunded, coalesce(sum(sent.held) filter (where sent.is_open), 0) as held,
  count(*) filter (where sent.is_uncertain) as uncertain_count,
  coalesce(sum(sent.held) filter (where sent.is_uncertain and sent.is_open), 0) as uncertain_held,
  coalesce(sum(sent.orphan_count), 0)::bigint as orphan_count,
  coalesce(sum(sent.charged) filter (where sent.orphan_count > 0 and not sent.is_owner), 0) as orphan_charged
from sent
group by sent.name, sent.unit
order by sent.name, sent.unit
