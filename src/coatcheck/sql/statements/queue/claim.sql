-- purpose: lease a batch of what is due, in turns of tenants and within each account's budget, of dispatches whose lease ended, and of doubt that can be looked up; and say what it is about
-- guard: rows are locked in a materialised CTE, and the update repeats the predicate: never more than was asked for; looks are counted under their account's lock
-- index: outbox_turn_idx, outbox_due_idx, outbox_deadline_idx, outbox_doubt_idx, outbox_suspect_idx, accounts_pkey, operations_pkey, specifications_pkey, deliveries_pkey, dispatches_pkey
with recursive wanted as (
  select *
  from unnest(%(action)s::text[], %(provider)s::text[], %(account)s::text[], %(room)s::integer[], %(reserve)s::integer[],
      %(lease_s)s::float8[], %(after_tenant)s::text[], %(after_precedence)s::smallint[])
    with ordinality as want(action, provider, account, room, reserve, lease_s, after_tenant, after_precedence, kind)
),
-- the tenants that this worker has something of in hand already
served as (
  select * from unnest(%(served_action)s::text[], %(served_tenant)s::text[]) as held(action, tenant_id)
),
configured as (
  select * from unnest(%(lookup_provider)s::text[], %(lookup_account)s::text[]) as lookup(provider, account)
),
-- when the claimer could not reach the database, as far as it was away at all
outage as materialized (
  select coatcheck.lease_now() - make_interval(secs => %(away_from_s)s::float8) as began_at,
    coatcheck.lease_now() - make_interval(secs => %(away_until_s)s::float8) as ended_at
),
-- include: claim_budgets
-- include: claim_suspects
-- include: claim_turns
-- include: claim_rest
-- include: claim_expired
-- include: claim_doubts
-- tenants with nothing in hand first; the last places are kept for them
placed as (
  select numbered.kind, numbered.operation_id, numbered.lane, numbered.number, numbered.visible_at
  from (
    select found.kind, found.operation_id, found.lane, found.is_fresh, found.visible_at,
      row_number() over (partition by found.kind order by not found.is_fresh, found.is_rest, found.rank, found.turn) as number
    from (
      select turns.kind, turns.operation_id, turns.lane, turns.visible_at, false as is_rest, turns.rank, turns.turn,
        turns.rank = 1 and not exists (
          select from served where served.action = allowed.action and served.tenant_id = turns.tenant_id) as is_fresh
      from turns
      join allowed using (kind)
      union all
      select rest.kind, rest.operation_id, rest.lane, rest.visible_at, true,
        row_number() over (partition by rest.kind order by rest.visible_at), 0, false
      from rest) as found) as numbered
  join allowed using (kind)
  where numbered.number <= allowed.free and (numbered.is_fresh or numbered.number <= allowed.room - allowed.reserve)
),
-- an account may have several names, and looking up is looking: each account's are counted together, and of those who come equally
-- early whoever has been due for longer is first
entitled as materialized (
  select operation_id, lane, account, action, kind, lease_s, is_suspect,
    row_number() over (partition by account, action order by number, visible_at, operation_id, lane) as number, leave_count
  from (
    select placed.operation_id, placed.lane, allowed.account, allowed.action, placed.kind, allowed.lease_s, false as is_suspect,
      placed.number, placed.visible_at, allowed.leave_count
    from placed
    join allowed using (kind)
    union all
    select operation_id, lane, account, action, null, lease_s, true, 0, null, null
    from suspect
    union all
    select operation_id, lane, account, action, null, lease_s, false, 0, null, null
    from expired
    union all
    select doubtful.operation_id, doubtful.lane, doubtful.account, case when doubtful.is_look then 'observe' else 'reconcile' end, null,
      -- a look at a job tries a pause better than a search does, where there is one
      %(doubt_lease_s)s::float8, false, case when budgets.is_paused then 2147483647 else 0 end, null,
      case when doubtful.is_look then budgets.look_leave end
    from doubtful
    left join budgets using (account)) as found
),
taken as materialized (
  select operation_id, lane, account, action, kind, lease_s, is_suspect,
    exists (select from budgets where budgets.account = entitled.account and budgets.failed_look_count > 0) as is_tried
  from entitled
  where coalesce(number <= leave_count, true)
),
looks_spent as (
  update coatcheck.accounts as kept set
    look_turn_at = case when kept.looks_per_s is null then kept.look_turn_at
      else greatest(kept.look_turn_at, coatcheck.lease_now()) + make_interval(secs => looks.look_count / kept.looks_per_s) end,
    -- the one look that tries a pause has until its lease ends
    observation_probe_at = case when kept.observation_paused_at is null then kept.observation_probe_at
      else coatcheck.lease_now() + make_interval(secs => looks.lease_s) end
  from (
    select account, count(*) as look_count, max(lease_s) as lease_s from taken where action = 'observe' group by account) as looks
  join counted using (account)
  where kept.account = looks.account
),
claimed as (
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
  from taken
  cross join outage
  where held.operation_id = taken.operation_id and held.lane = taken.lane
    and held.parked_at is null and held.visible_at <= coatcheck.due_now()
  returning held.operation_id, held.lane, held.action, held.provider, held.account, held.expected_revision,
    held.expected_remote_job_id, held.lease_token, held.lease_count, held.leased_at, taken.lease_s, held.wait_reason,
    held.wait_since_at, held.wait_count, held.tenant_id, taken.is_suspect, taken.is_tried, taken.kind
),
-- where the next walk begins: before the first who was met and got nothing that it could have got, else where this one ended
passed as (
  select kind, hop
  from ring
  where is_skipped
  union all
  select turns.kind, min(turns.turn)
  from turns
  group by turns.kind, turns.tenant_id
  having not bool_or((turns.operation_id, turns.lane) in (select operation_id, lane from taken))
),
spots as (
  select ring.kind, ring.tenant_id,
    -- of a tenant that was met what comes after is not due before the next round
    case when ring.is_met and last.passed_hop is null then 32767::smallint else ring.precedence end as precedence
  from (
    select ring.kind, (select min(passed.hop) from passed where passed.kind = ring.kind) as passed_hop,
      max(ring.hop) filter (where ring.is_met or ring.hop = allowed.hop_limit) as end_hop
    from ring
    join allowed using (kind)
    group by ring.kind) as last
  join ring on ring.kind = last.kind and ring.hop = coalesce(last.passed_hop - 1, last.end_hop)
),
-- of each wanted kind where its next walk begins, and when its budget opens, should that be what stopped it
said as (
  select allowed.kind,
    spots.tenant_id as after_tenant, spots.precedence as after_precedence,
    case when taken_count >= allowed.leave_count and allowed.opens_in_s >= 0
      then allowed.opens_in_s + coalesce(taken_count / allowed.per_s, 0) end as opens_in_s
  from allowed
  cross join lateral (select count(*) as taken_count from taken where taken.kind = allowed.kind) as tally
  left join spots using (kind)
)
-- what it is about is read as it stood when the claim began, which may have been before whoever held the row last changed it: then its
-- revision is older than the message expects. The locks last until all of this is on its way, so that a worker which stops meanwhile holds them:
-- what is told fits into what the kernel takes without it
select message.operation_id as message_operation_id, message.lane, message.action, message.provider as message_provider,
  message.account as message_account, message.expected_revision, message.expected_remote_job_id, message.lease_token, message.lease_count,
  message.leased_at, message.lease_s, message.wait_reason, message.wait_since_at, message.wait_count,
  message.tenant_id as message_tenant_id, message.is_suspect, message.is_tried, message.kind, message.after_tenant,
  message.after_precedence, message.opens_in_s, message.has_suspects,
-- include: subject_columns
-- include: operation_columns
from (
  select claimed.operation_id, claimed.lane, claimed.action, claimed.provider, claimed.account, claimed.expected_revision,
    claimed.expected_remote_job_id, claimed.lease_token, claimed.lease_count, claimed.leased_at, claimed.lease_s, claimed.wait_reason,
    claimed.wait_since_at, claimed.wait_count, claimed.tenant_id, claimed.is_suspect, claimed.is_tried, claimed.kind,
    null::text as after_tenant, null::smallint as after_precedence, null::float8 as opens_in_s,
    -- where the account lets nobody take it now, no hands are emptied for it
    exists (
      select
      from allowed
      join coatcheck.outbox as other using (provider, action)
      where coalesce(allowed.leave_count > 0, true)
        and other.parked_at is null and other.leased_by is not null and other.lease_count >= 2
        and other.visible_at <= coatcheck.due_now()
        and (other.account is null or other.account = allowed.account)
        and other.schema_version = any(%(schema_version)s::smallint[])) as has_suspects,
    case when row.size_bytes is not null and row_number() over so_far <= %(told_limit)s::integer
      and sum(row.size_bytes) over so_far <= %(answer_limit_bytes)s::integer then claimed.operation_id end as subject_id,
    -- texts share what the rows leave of the answer
    least(%(text_limit_bytes)s::integer, (%(answer_limit_bytes)s::integer - sum(row.size_bytes) over ())
      / nullif(count(*) filter (where claimed.action in ('dispatch', 'deliver')) over (), 0))::integer as text_limit_bytes
  from claimed
  left join coatcheck.operations as about on about.operation_id = claimed.operation_id
  -- names are said twice, by the message and by its operation, and a time takes 29 bytes
  cross join lateral (
    select %(row_bytes)s::integer + 29 * num_nonnulls(about.not_before_at, about.dispatch_by_at, about.observe_by_at,
        about.cancel_requested_at, about.accepted_at, about.final_at)
      + octet_length(about.operation_key) + coalesce(octet_length(about.remote_status), 0)
      + 2 * (octet_length(claimed.tenant_id) + octet_length(claimed.provider)
        + coalesce(octet_length(claimed.account), 0) + coalesce(octet_length(claimed.expected_remote_job_id), 0)) as size_bytes) as row
  window so_far as (rows unbounded preceding)
  union all
  select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, said.kind, said.after_tenant,
    said.after_precedence, said.opens_in_s, null, null, null
  from said
  where said.after_tenant is not null or said.opens_in_s is not null) as message
-- include: subject
