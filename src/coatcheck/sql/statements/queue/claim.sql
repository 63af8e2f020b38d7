-- purpose: lease a batch of what is due, of dispatches whose lease ended, and of doubt that can be looked up
-- guard: rows are locked in a materialised CTE, and the update repeats the predicate: never more than was asked for
-- index: outbox_due_idx, outbox_doubt_idx
with wanted as (
  select *
  from unnest(%(action)s::text[], %(provider)s::text[], %(account)s::text[], %(room)s::integer[], %(lease_s)s::float8[])
    as want(action, provider, account, room, lease_s)
),
due as materialized (
  select found.operation_id, found.lane, wanted.lease_s
  from wanted
  cross join lateral (
    select held.operation_id, held.lane
    from coatcheck.outbox as held
    where held.provider = wanted.provider and held.action = wanted.action and held.action <> 'reconcile'
      and held.parked_at is null and held.visible_at <= coatcheck.due_now()
      and (held.account is null or held.account = wanted.account)
      and held.schema_version = any(%(schema_version)s::smallint[])
    order by held.visible_at
    limit wanted.room
    for no key update skip locked
  ) as found
),
doubtful as materialized (
  select held.operation_id, held.lane, %(doubt_lease_s)s::float8 as lease_s
  from coatcheck.outbox as held
  where held.action = 'reconcile' and held.parked_at is null and held.visible_at <= coatcheck.due_now()
    -- the end of a lease needs no adapter; asking a service needs its account's credential
    and (held.wait_reason is distinct from 'lookup' or exists (
      select
      from unnest(%(lookup_provider)s::text[], %(lookup_account)s::text[]) as configured(provider, account)
      where configured.provider = held.provider and configured.account = held.account))
  order by held.visible_at
  limit %(doubts)s::integer
  for no key update skip locked
)
update coatcheck.outbox as held set
  visible_at = coatcheck.lease_now() + make_interval(secs => taken.lease_s),
  lease_token = nextval('coatcheck.lease_tokens'),
  lease_count = held.lease_count + 1,
  leased_by = %(worker)s::text,
  leased_at = coatcheck.lease_now()
from (
  select operation_id, lane, lease_s from due
  union all select operation_id, lane, lease_s from doubtful) as taken
where held.operation_id = taken.operation_id and held.lane = taken.lane
  and held.parked_at is null and held.visible_at <= coatcheck.due_now()
returning held.operation_id, held.lane, held.action, held.provider, held.account, held.expected_revision,
  held.expected_remote_job_id, held.lease_token, held.lease_count, held.leased_at, taken.lease_s, held.wait_reason,
  held.wait_since_at, held.wait_count
