-- purpose: lease a batch of what is due, of dispatches whose lease ended, and of doubt that can be looked up
-- guard: rows are locked in a materialised CTE, and the update repeats the predicate: never more than was asked for
-- index: outbox_due_idx, outbox_doubt_idx, outbox_suspect_idx
with wanted as (
  select *
  from unnest(%(action)s::text[], %(provider)s::text[], %(account)s::text[], %(room)s::integer[], %(lease_s)s::float8[])
    as want(action, provider, account, room, lease_s)
),
-- when the claimer could not reach the database, as far as it was away at all
outage as materialized (
  select coatcheck.lease_now() - make_interval(secs => %(away_from_s)s::float8) as began_at,
    coatcheck.lease_now() - make_interval(secs => %(away_until_s)s::float8) as ended_at
),
-- a message whose leases keep ending without a word may take its worker with it, and what else that has in hand: it is leased alone
suspect as materialized (
  select found.operation_id, found.lane, wanted.lease_s
  from wanted
  cross join lateral (
    select held.operation_id, held.lane
    from coatcheck.outbox as held
    where held.provider = wanted.provider and held.action = wanted.action and held.action <> 'reconcile'
      and held.parked_at is null and held.leased_by is not null and held.lease_count >= 2
      and held.visible_at <= coatcheck.due_now()
      and (held.account is null or held.account = wanted.account)
      and held.schema_version = any(%(schema_version)s::smallint[])
    order by held.visible_at
    limit 1
    for no key update skip locked
  ) as found
  where %(is_free)s::boolean
  limit 1
),
due as materialized (
  select found.operation_id, found.lane, wanted.lease_s
  from wanted
  cross join lateral (
    select held.operation_id, held.lane
    from coatcheck.outbox as held
    where held.provider = wanted.provider and held.action = wanted.action and held.action <> 'reconcile'
      and held.parked_at is null and held.visible_at <= coatcheck.due_now()
      and (held.leased_by is null or held.lease_count < 2)
      and (held.account is null or held.account = wanted.account)
      and held.schema_version = any(%(schema_version)s::smallint[])
    order by held.visible_at
    limit wanted.room
    for no key update skip locked
  ) as found
  where not exists (select from suspect)
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
    and not exists (select from suspect)
  order by held.visible_at
  limit %(doubts)s::integer
  for no key update skip locked
)
update coatcheck.outbox as held set
  visible_at = coatcheck.lease_now() + make_interval(secs => taken.lease_s),
  lease_token = nextval('coatcheck.lease_tokens'),
  -- a lease that ended while the database was away says nothing about its message
  lease_count = case
    when held.leased_by is not null and held.visible_at between outage.began_at and outage.ended_at then 1
    else held.lease_count + 1 end,
  last_error = case
    when held.leased_by is null or held.visible_at between outage.began_at and outage.ended_at then held.last_error
    else 'lease_ended' end,
  first_leased_at = case when held.lease_count = 0 then coatcheck.lease_now()
    else coalesce(held.first_leased_at, held.leased_at, coatcheck.lease_now()) end,
  last_leased_at = coatcheck.lease_now(),
  leased_by = %(worker)s::text,
  leased_at = coatcheck.lease_now()
from (
  select operation_id, lane, lease_s, false as is_suspect from due
  union all select operation_id, lane, lease_s, true from suspect
  union all select operation_id, lane, lease_s, false from doubtful) as taken
cross join outage
where held.operation_id = taken.operation_id and held.lane = taken.lane
  and held.parked_at is null and held.visible_at <= coatcheck.due_now()
returning held.operation_id, held.lane, held.action, held.provider, held.account, held.expected_revision,
  held.expected_remote_job_id, held.lease_token, held.lease_count, held.leased_at, taken.lease_s, held.wait_reason,
  held.wait_since_at, held.wait_count, taken.is_suspect,
  exists (
    select
    from wanted
    join coatcheck.outbox as other using (provider, action)
    where other.parked_at is null and other.leased_by is not null and other.lease_count >= 2
      and other.visible_at <= coatcheck.due_now()
      and (other.account is null or other.account = wanted.account)
      and other.schema_version = any(%(schema_version)s::smallint[])) as has_suspects
