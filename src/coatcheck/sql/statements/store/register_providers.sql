-- purpose: make configured providers known; where all are, nothing is written, so that a start waits for no standby
-- guard: a pause that exists stays; a new name of a paused account is paused with it, and any new name once a restore was noticed
-- index: providers_pkey, accounts_pkey
with fresh as materialized (
  select i.name, i.account, i.kind
  from unnest(%(name)s::text[], %(account)s::text[], %(kind)s::text[]) as i(name, account, kind)
  where not exists (
    select
    from coatcheck.providers as same
    join coatcheck.accounts as budget using (account)
    where same.name = i.name and same.account = i.account and same.kind = i.kind)
),
accounts as (
  insert into coatcheck.accounts (account)
  select distinct account from fresh order by account
  on conflict do nothing
),
-- the copy may have lost the name with what was sent under it; whoever notices a restore holds this row, and is waited for
restored as materialized (
  select case
      when (held.system_identifier, held.timeline, held.made_as) is distinct from (here.system_identifier, here.timeline, here.made_as)
        then 'not compared yet'
      when held.restored_at is not null then held.restored_reason end as told
  from coatcheck.installation as held
  cross join coatcheck.whereabouts() as here
  where exists (select from fresh)
  for share of held
)
insert into coatcheck.providers as known (name, account, kind, dispatch_paused_at, dispatch_pause_reason, dispatch_paused_by)
select i.name, i.account, i.kind, paused.dispatch_paused_at, paused.dispatch_pause_reason, paused.dispatch_paused_by
from fresh as i
left join lateral (
  select each.dispatch_paused_at, each.dispatch_pause_reason, each.dispatch_paused_by
  from (
    select 1 as rank, other.name, other.dispatch_paused_at, other.dispatch_pause_reason, other.dispatch_paused_by
    from coatcheck.providers as other
    where other.account = i.account and other.dispatch_paused_at is not null
    union all
    select 2, '', coatcheck.lease_now(), 'restored: new to this copy: ' || restored.told, 'coatcheck'
    from restored
    where restored.told is not null
      and not exists (select from coatcheck.providers as known_before where known_before.account = i.account)
  ) as each
  order by each.rank, each.name
  limit 1) as paused on true
order by i.name
on conflict (name) do update set account = excluded.account, kind = excluded.kind
  where (known.account, known.kind) is distinct from (excluded.account, excluded.kind)
