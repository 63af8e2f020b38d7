-- purpose: what the replies of a batch say of each account, and the pause that follows: a 401, a 402, five 403s or many doubts in a row
-- guard: only replies that are news: one that is written again says nothing again; a pause that exists keeps its instant and reason
-- index: providers_pkey
replies as (
  select judged.account, judged.http_status, judged.outcome, judged.position,
    max(judged.position) filter (where judged.http_status <> 403) over (partition by judged.account) as last_other,
    max(judged.position) filter (where judged.outcome <> 'uncertain') over (partition by judged.account) as last_sure
  from judged
  where judged.status <> 'stale' and judged.is_news and (judged.http_status is not null or judged.outcome = 'uncertain')
),
account_replies as (
  select account, min(http_status) filter (where outcome = 'rejected' and http_status in (401, 402)) as denied_status,
    -- 403s in a row, counted from the last other reply
    count(*) filter (where outcome = 'rejected' and http_status = 403 and position > coalesce(last_other, 0)) as forbidden_count,
    bool_or(http_status <> 403) as other_seen,
    -- doubts in a row: what was proven not sent neither counts nor ends them
    count(*) filter (where outcome = 'uncertain' and position > coalesce(last_sure, 0)) as doubt_count,
    bool_or(outcome <> 'uncertain') as sure_seen
  from replies
  group by account
),
accounts as materialized (
  select held.name, held.doubt_limit, news.denied_status,
    news.forbidden_count + case when news.other_seen then 0 else held.forbidden_count end as forbidden_count,
    news.doubt_count + case when news.sure_seen then 0 else held.doubt_count end as doubt_count
  from coatcheck.providers as held
  join account_replies as news using (account)
  where news.denied_status is not null or news.forbidden_count > 0 or held.forbidden_count > 0
    or news.doubt_count > 0 or held.doubt_count > 0
  order by held.name
  for no key update of held
),
pauses as (
  update coatcheck.providers as held set
    forbidden_count = accounts.forbidden_count,
    doubt_count = accounts.doubt_count,
    dispatch_paused_at = case when news.reason is null then held.dispatch_paused_at
      else coalesce(held.dispatch_paused_at, coatcheck.lease_now()) end,
    dispatch_pause_reason = coalesce(held.dispatch_pause_reason, news.reason),
    dispatch_paused_by = case when news.reason is null then held.dispatch_paused_by
      else coalesce(held.dispatch_paused_by, 'coatcheck') end
  from accounts
  cross join lateral (
    select case
      when accounts.denied_status is not null then format('the service answered %%s to a dispatch', accounts.denied_status)
      when accounts.forbidden_count >= 5 then 'five dispatches in a row were answered 403'
      when accounts.doubt_count >= accounts.doubt_limit
        then format('%%s dispatches in a row ended in doubt', accounts.doubt_count) end as reason) as news
  where held.name = accounts.name
),
