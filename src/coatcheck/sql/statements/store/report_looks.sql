-- purpose: what looks say of their account: failures in a row and the pause that follows, its end, and for how long a service asked to be left alone
-- guard: under the account's lock; a look from before a pause does not prolong it, and no look ends what a person paused
-- index: accounts_pkey
with input as materialized (
  select *
  from unnest(%(account)s::text[], %(leased_at)s::timestamptz[], %(failure)s::text[], %(shut_s)s::float8[], %(is_made)s::boolean[])
    with ordinality as i(account, leased_at, failure, shut_s, is_made, position)
),
told as (
  select account, max(position) filter (where failure is null and is_made) as last_success, max(shut_s) as shut_s,
    max(leased_at) filter (where failure is not null) as failed_since_at, max(leased_at) filter (where not is_made) as spared_since_at,
    (array_agg(failure order by position desc) filter (where failure is not null))[1] as last_failure
  from input
  group by account
),
locked as materialized (
  select held.account, held.observation_paused_at, held.observation_probe_at, held.failed_look_count
  from coatcheck.accounts as held
  join told using (account)
  order by held.account
  for no key update of held
),
judged as (
  select locked.account, told.shut_s, told.last_success is not null as succeeded, told.failed_since_at, told.spared_since_at,
    told.last_failure,
    (select count(*) from input where input.account = locked.account and input.failure is not null
      and input.position > coalesce(told.last_success, 0))::integer as failure_count
  from locked
  join told using (account)
),
-- one word for what follows: the pause ends, is tried again later, or at once as nothing was asked, begins, or stays as it is
decided as (
  select judged.account, judged.shut_s, judged.last_failure, clock.at, counted.failed_look_count,
    case
      when kept.observation_probe_at is not null and judged.succeeded then 'ends'
      when kept.observation_probe_at is not null and judged.failed_since_at > kept.observation_paused_at then 'stays'
      when kept.observation_probe_at is not null and judged.spared_since_at > kept.observation_paused_at then 'is due'
      when kept.observation_paused_at is null and counted.failed_look_count >= %(limit)s::integer then 'begins' end as verdict
  from judged
  join locked as kept using (account)
  cross join lateral (select coatcheck.lease_now() as at) as clock
  cross join lateral (
    select judged.failure_count + case when judged.succeeded then 0 else kept.failed_look_count end as failed_look_count) as counted
)
update coatcheck.accounts as kept set
  look_shut_until = greatest(kept.look_shut_until, decided.at + make_interval(secs => decided.shut_s)),
  failed_look_count = decided.failed_look_count,
  failed_probe_count = case decided.verdict when 'stays' then kept.failed_probe_count + 1 when 'begins' then 0 when 'ends' then 0
    else kept.failed_probe_count end,
  observation_paused_at = case decided.verdict when 'begins' then decided.at when 'ends' then null else kept.observation_paused_at end,
  observation_pause_reason = case decided.verdict
    when 'begins' then format('%%s looks in a row failed, the last one with: %%s', decided.failed_look_count, decided.last_failure)
    when 'ends' then null else kept.observation_pause_reason end,
  observation_paused_by = case decided.verdict when 'begins' then 'coatcheck' when 'ends' then null else kept.observation_paused_by end,
  observation_probe_at = case decided.verdict
    when 'begins' then decided.at + make_interval(secs => %(first_s)s::float8)
    when 'stays' then decided.at + make_interval(
      secs => least(%(last_s)s::float8, %(first_s)s::float8 * power(2, least(kept.failed_probe_count + 1, 10))))
    when 'is due' then decided.at
    when 'ends' then null else kept.observation_probe_at end
from decided
where kept.account = decided.account
