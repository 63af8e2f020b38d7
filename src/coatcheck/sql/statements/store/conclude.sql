-- purpose: the end of a batch of POSTs: evidence always, the conclusion and its lanes where dispatch and phase still allow it
-- guard: dispatch_id and phase, never the revision, so that a paid id is not dropped whoever swept or decided meanwhile
-- index: operations_pkey, dispatches_pkey, remote_jobs_pkey, allowances_pkey, outbox_pkey
with input as materialized (
  select *
  from unnest(%(operation_id)s::uuid[], %(dispatch_id)s::uuid[], %(event)s::text[], %(outcome)s::text[], %(phase)s::text[],
      %(withdrawn)s::boolean[], %(cause)s::text[], %(remote_job_id)s::text[], %(observe_for_s)s::float8[], %(account)s::text[],
      %(number)s::integer[], %(authorisation)s::integer[], %(authorised_by)s::text[], %(stage)s::text[], %(marks_ms)s::text[],
      %(bytes_sent)s::bigint[], %(bytes_received)s::bigint[], %(http_status)s::integer[], %(request_ids)s::text[],
      %(candidate_id)s::text[], %(reply)s::bytea[], %(settle_s)s::float8[], %(begun_ago_s)s::float8[],
      %(held)s::numeric[], %(unit)s::text[], %(shut_s)s::float8[])
    with ordinality as i(operation_id, dispatch_id, event, outcome, phase, withdrawn, cause, remote_job_id, observe_for_s, account,
      number, authorisation, authorised_by, stage, marks_ms, bytes_sent, bytes_received, http_status, request_ids, candidate_id,
      reply, settle_s, begun_ago_s, held_then, unit_then, shut_s, position)
),
locked as materialized (
  select held.operation_id, held.tenant_id, held.provider, held.account, held.phase, held.render_state, held.delivery_state, held.dispatch_id,
    held.remote_job_id, held.revision, held.estimate, held.unit, held.cancel_requested_at, held.dispatch_by_at
  from coatcheck.operations as held
  join input using (operation_id)
  order by held.operation_id
  for no key update of held
),
-- the same rows as this statement's snapshot has them: a later revision under the lock makes all else that was read too old
seen as materialized (
  select was.operation_id, was.revision
  from coatcheck.operations as was
  where was.operation_id in (select operation_id from input)
),
known_dispatches as materialized (
  select held.dispatch_id, held.operation_id, held.number, held.authorisation, held.ended_at,
    held.outcome not in ('not_sent', 'throttled', 'proven_absent') and not held.displaced as spends,
    held.held, held.charged, held.basis, held.unit, held.settled_at,
    coatcheck.outcome_rank(held.outcome) as rank
  from coatcheck.dispatches as held
  where held.operation_id in (select operation_id from input) and (select count(*) from locked) >= 0
  order by held.dispatch_id
  for no key update
),
traced as materialized (
  select input.operation_id, locked.revision is distinct from seen.revision as outdated, mine.dispatch_id is null as vanished,
    mine.ended_at is null as is_news, holder.dispatch_id is not null as taken, coalesce(numbers.last_number, 0) as last_number,
    -- what is proven already is not concluded against
    coatcheck.outcome_rank(input.outcome) < coalesce(mine.rank, 0) as disproven,
    coatcheck.outcome_rank(input.outcome) > coalesce(mine.rank, -1) as rises, mine.held, mine.charged, mine.basis, mine.unit,
    mine.settled_at
  from input
  left join locked using (operation_id)
  left join seen using (operation_id)
  left join known_dispatches as mine on mine.dispatch_id = input.dispatch_id
  left join known_dispatches as holder on holder.operation_id = input.operation_id
    and holder.authorisation = coalesce(mine.authorisation, input.authorisation) and holder.spends
    and holder.dispatch_id <> input.dispatch_id
  left join (
    select operation_id, max(number) as last_number from known_dispatches group by operation_id) as numbers
    on numbers.operation_id = input.operation_id
),
guarded as materialized (
  select input.*, locked.phase as from_phase, locked.render_state as from_render_state,
    locked.delivery_state as from_delivery_state, locked.remote_job_id as saved_job_id, locked.tenant_id, locked.account as saved_account, traced.rises,
    traced.charged as was_charged, traced.basis as was_basis, traced.settled_at as was_settled_at,
    coalesce(traced.held, input.held_then, locked.estimate, 0) as held,
    coalesce(traced.unit, input.unit_then, locked.unit, 'credits') as unit, traced.outdated, traced.vanished, traced.is_news,
    case when traced.vanished then greatest(input.number, traced.last_number + 1) else input.number end as row_number,
    traced.taken or locked.operation_id is null as displaced,
    coalesce(input.phase is not null and not traced.outdated and not traced.disproven
      and (input.phase not in ('prepared', 'cancelled') or input.withdrawn
        = (locked.cancel_requested_at is not null or coalesce(locked.dispatch_by_at <= coatcheck.due_now(), false)))
      and case
        when locked.dispatch_id = input.dispatch_id then locked.phase in ('dispatching', 'uncertain')
          or (locked.phase = 'prepared' and input.remote_job_id is not null)
        -- the mark was lost with a failover: an id still belongs here, and what may have been sent is not sent again
        else traced.vanished and not traced.taken and locked.phase = 'prepared' end, false)
      as concludes
  from input
  join traced using (operation_id)
  left join locked using (operation_id)
),
jobs_claimed as (
  insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
  select account, remote_job_id, operation_id, dispatch_id, case when concludes then 'owner' else 'orphan' end,
    coatcheck.lease_now()
  from guarded
  where not outdated and remote_job_id is not null and remote_job_id is distinct from saved_job_id
  order by account, remote_job_id, concludes desc
  on conflict do nothing
  returning account, remote_job_id, operation_id
),
jobs_promoted as (
  update coatcheck.remote_jobs as held set
    role = 'owner',
    dispatch_id = guarded.dispatch_id,
    resolved_at = null,
    resolved_by = null,
    resolution = null
  from guarded
  where guarded.concludes and held.account = guarded.account and held.remote_job_id = guarded.remote_job_id
    and held.operation_id = guarded.operation_id and held.role = 'orphan'
    and not exists (select from jobs_claimed as won where won.account = held.account and won.remote_job_id = held.remote_job_id)
  returning held.account, held.remote_job_id, held.operation_id
),
found as materialized (
  select guarded.*,
    case
      when guarded.outdated then 'stale'
      when not guarded.concludes then case
        when guarded.remote_job_id is null or guarded.remote_job_id is not distinct from guarded.saved_job_id or exists (
            select from jobs_claimed as won
            where won.account = guarded.account and won.remote_job_id = guarded.remote_job_id)
          or exists (
            select from coatcheck.remote_jobs as held
            where held.account = guarded.account and held.remote_job_id = guarded.remote_job_id) then 'evidence'
        -- whose it is was committed after this statement's snapshot: once more
        else 'stale' end
      when guarded.remote_job_id is null or exists (
        select
        from (select account, remote_job_id, operation_id from jobs_claimed
          union all select account, remote_job_id, operation_id from jobs_promoted) as won
        where won.account = guarded.account and won.remote_job_id = guarded.remote_job_id
          and won.operation_id = guarded.operation_id) then 'applied'
      when exists (
        select from coatcheck.remote_jobs as held
        where held.account = guarded.account and held.remote_job_id = guarded.remote_job_id
          and held.operation_id <> guarded.operation_id) then 'owned'
      -- the owner's row was committed after this statement's snapshot: once more
      else 'stale' end as status
  from guarded
),
judged as materialized (
  select operation_id, dispatch_id, outcome, phase, cause, remote_job_id, observe_for_s, account, authorisation, authorised_by, stage,
    marks_ms, bytes_sent, bytes_received, http_status, request_ids, candidate_id, reply, settle_s, begun_ago_s, position, from_phase,
    from_render_state, from_delivery_state, saved_job_id, held, unit, vanished, is_news, row_number, displaced, status, rises,
    tenant_id, saved_account, shut_s, was_charged, was_basis, was_settled_at,
    -- the history tells what happened, not what the reply would have meant
    case when status = 'owned' then 'remote_id_owned' when status = 'evidence' and phase is not null then 'reply_kept'
      else event end as event,
    %(worker)s::text as actor, cause as reason, 0::smallint as message_lane
  from found
),
money as materialized (
  select judged.operation_id, judged.tenant_id, judged.unit, judged.held, judged.was_charged,
    judged.was_settled_at is null and not judged.vanished as was_open,
    case verdict.word when 'as_it_was' then judged.was_charged when 'nothing' then 0
      when 'spent' then coalesce(nullif(judged.was_charged, 0), judged.held) end as charged,
    case verdict.word when 'as_it_was' then judged.was_basis when 'open' then null else 'assumed' end as basis,
    case verdict.word when 'as_it_was' then judged.was_settled_at when 'open' then null
      else coalesce(judged.was_settled_at, clock.at) end as settled_at
  from judged
  cross join lateral (select coatcheck.lease_now() as at) as clock
  cross join lateral (select case
      -- an id that concludes re-opens what was settled, and so does one that leads into doubt, also again: the hold is taken, whatever the limit
      when judged.status in ('applied', 'owned') and judged.remote_job_id is not null then 'open'
      when not judged.rises then 'as_it_was'
      when coatcheck.outcome_rank(judged.outcome) = 2 then 'nothing'
      -- a paid job that no operation took, and a doubt that nobody can decide any more
      when judged.status = 'evidence' and (judged.remote_job_id is not null or judged.vanished) then 'spent'
      when judged.vanished then 'open'
      else 'as_it_was' end as word) as verdict
  where judged.status <> 'stale'
),
evidence as (
  insert into coatcheck.dispatches as held (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker,
    begun_at, send_by_at, quiescent_at, ended_at, stage, marks_ms, bytes_sent, bytes_received, outcome, cause, http_status,
    request_ids, candidate_id, remote_job_id, reply, displaced, held, unit, charged, basis, settled_at)
  select dispatch_id, operation_id, row_number, authorisation, authorised_by, account, %(worker)s::text,
    clock.at - make_interval(secs => begun_ago_s), clock.at - make_interval(secs => begun_ago_s),
    clock.at + make_interval(secs => settle_s), clock.at, stage, marks_ms::json, bytes_sent, bytes_received, outcome, cause,
    http_status, request_ids::jsonb, candidate_id, remote_job_id, reply, displaced, judged.held, judged.unit, money.charged,
    money.basis, money.settled_at
  from judged
  join money using (operation_id)
  cross join lateral (select coatcheck.lease_now() as at) as clock
  order by dispatch_id
  on conflict (dispatch_id) do update set
    outcome = case when coatcheck.outcome_rank(excluded.outcome) > coatcheck.outcome_rank(held.outcome)
      then excluded.outcome else held.outcome end,
    -- a proof of nothing sent that is contradicted after another mark took its place in the authorisation
    displaced = held.displaced or (excluded.displaced
      and coatcheck.outcome_rank(excluded.outcome) > coatcheck.outcome_rank(held.outcome)),
    remote_job_id = coalesce(held.remote_job_id, excluded.remote_job_id),
    quiescent_at = least(held.quiescent_at, excluded.quiescent_at),
    ended_at = coalesce(held.ended_at, excluded.ended_at),
    stage = excluded.stage,
    marks_ms = excluded.marks_ms,
    bytes_sent = excluded.bytes_sent,
    bytes_received = excluded.bytes_received,
    cause = coalesce(excluded.cause, held.cause),
    http_status = coalesce(excluded.http_status, held.http_status),
    request_ids = coalesce(excluded.request_ids, held.request_ids),
    candidate_id = coalesce(held.candidate_id, excluded.candidate_id),
    reply = coalesce(excluded.reply, held.reply),
    charged = excluded.charged,
    basis = excluded.basis,
    settled_at = excluded.settled_at
),
-- include: account_pauses
phases as (
  select account, saved_account, from_phase, from_render_state, is_news, shut_s,
    case status when 'applied' then phase when 'owned' then 'uncertain' else from_phase end as to_phase,
    -- whose operation it is afterwards: what is only kept as evidence moves it to no other account
    case when status = 'applied' and remote_job_id is not null then account else coalesce(saved_account, account) end as to_account
  from judged
  where status <> 'stale' and (select count(*) from accounts) >= 0
),
account_news as (
  select to_account as account, null::float8 as shut_s, coatcheck.is_in_flight(to_phase, from_render_state)::integer as flights
  from phases
  union all
  select saved_account, null, -coatcheck.is_in_flight(from_phase, from_render_state)::integer
  from phases
  union all
  select account, shut_s, 0
  from phases
  where is_news
),
-- include: account_news
amounts as (
  select tenant_id, unit,
    case when settled_at is null then held else 0 end - case when was_open then held else 0 end as held,
    coalesce(charged, 0) - coalesce(was_charged, 0) as charged
  from money
  -- providers are locked before accounts, and those before allowances, as everywhere
  where tenant_id is not null and (select count(*) from account_locks) >= 0
),
-- include: allowances
written as (
  update coatcheck.operations as stored set
    phase = case judged.status when 'applied' then judged.phase when 'owned' then 'uncertain' else stored.phase end,
    dispatch_id = case when judged.status in ('applied', 'owned') then judged.dispatch_id else stored.dispatch_id end,
    dispatch_count = greatest(stored.dispatch_count, judged.row_number),
    -- a remote job is looked up with the credential that made it
    account = case when judged.status = 'applied' and judged.remote_job_id is not null then judged.account
      else coalesce(stored.account, judged.account) end,
    remote_job_id = case when judged.status = 'applied' then judged.remote_job_id else stored.remote_job_id end,
    accepted_at = case when judged.status = 'applied' and judged.remote_job_id is not null then coatcheck.lease_now()
      else stored.accepted_at end,
    observe_by_at = case when judged.status = 'applied' and judged.remote_job_id is not null
      then coatcheck.lease_now() + make_interval(secs => judged.observe_for_s) else stored.observe_by_at end,
    revision = stored.revision + 1,
    updated_at = coatcheck.lease_now()
  from judged
  -- providers and allowances are locked before lanes, as everywhere
  where judged.status <> 'stale' and stored.operation_id = judged.operation_id and (select count(*) from accounts) >= 0
    and (select count(*) from allowance_locks) >= 0
  returning stored.operation_id, stored.revision, stored.phase, stored.render_state, stored.delivery_state, stored.provider,
    stored.account, stored.remote_job_id, stored.tenant_id, stored.priority, stored.dispatch_by_at
),
lane_changes as materialized (
  select change.operation_id, change.lane, change.verb in ('drop', 'drop_all') and judged.status <> 'owned' as drops,
    change.verb in ('aim', 'park') or judged.status = 'owned' as aims,
    case when judged.status = 'owned' then 'park' else change.verb end as verb,
    case when judged.status = 'owned' then 'reconcile' else change.action end as action,
    change.delay_s,
    case when judged.status = 'owned' then 'uncertain' else change.reason end as reason
  from unnest(%(lane_operation_id)s::uuid[], %(lane)s::smallint[], %(lane_verb)s::text[], %(lane_action)s::text[],
      %(lane_delay_s)s::float8[], %(lane_reason)s::text[])
    as change(operation_id, lane, verb, action, delay_s, reason)
  join judged using (operation_id)
  where judged.status in ('applied', 'owned')
),
-- include: lanes
-- include: chronicle
-- two operations name one job: the service gave it twice, or a person adopted it for the wrong one
disputes as materialized (
  select judged.operation_id, job.operation_id as owner_id,
    case when exists (
      select from coatcheck.history as past
      where past.operation_id = job.operation_id and past.event = 'adopted') then 'ours' else 'theirs' end as boundary
  from judged
  join coatcheck.remote_jobs as job on job.account = judged.account and job.remote_job_id = judged.remote_job_id
  where judged.status in ('owned', 'evidence') and job.operation_id <> judged.operation_id
),
incidents as (
  insert into coatcheck.incidents as held (operation_id, kind, boundary, detail, first_at, last_at)
  -- two replies of a batch may dispute one owner's job: a row may be named once only
  select distinct on (fault.operation_id, fault.kind) fault.operation_id, fault.kind, fault.boundary, fault.detail, clock.at, clock.at
  from judged
  left join disputes using (operation_id)
  cross join lateral (select coatcheck.lease_now() as at) as clock
  cross join lateral (values
    (judged.operation_id, 'remote_id_owned', disputes.boundary, disputes.owner_id is not null,
      'the reply names a remote job of another operation'),
    (disputes.owner_id, 'remote_id_disputed', disputes.boundary, disputes.owner_id is not null,
      'a reply to another operation names the remote job of this one'),
    (judged.operation_id, 'dispatch_vanished', 'ours', judged.vanished and judged.status <> 'stale', 'the dispatch row was gone when its reply was saved'),
    (judged.operation_id, 'late_remote_job', 'network', judged.status = 'evidence' and disputes.owner_id is null
      and judged.remote_job_id is distinct from judged.saved_job_id
      and judged.remote_job_id is not null, 'an id arrived that no longer concludes this operation'),
    (judged.operation_id, 'contradicting_reply', 'theirs', judged.status = 'evidence' and judged.saved_job_id is not null and judged.remote_job_id is null,
      'a reply without an id arrived for an accepted operation')
  ) as fault(operation_id, kind, boundary, happened, detail)
  where fault.happened
  order by fault.operation_id, fault.kind
  on conflict (operation_id, kind) do update set count = held.count + 1, last_at = excluded.last_at
)
select judged.operation_id, judged.status, written.revision
from judged
left join written using (operation_id)
