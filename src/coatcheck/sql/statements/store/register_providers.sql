-- purpose: make configured providers known; where all are, nothing is written, so that a start waits for no standby
-- guard: a pause that exists stays, and a new name of a paused account is paused with it
-- index: providers_pkey
insert into coatcheck.providers as known (name, account, kind, dispatch_paused_at, dispatch_pause_reason, dispatch_paused_by)
select i.name, i.account, i.kind, paused.dispatch_paused_at, paused.dispatch_pause_reason, paused.dispatch_paused_by
from unnest(%(name)s::text[], %(account)s::text[], %(kind)s::text[]) as i(name, account, kind)
left join lateral (
  select other.dispatch_paused_at, other.dispatch_pause_reason, other.dispatch_paused_by
  from coatcheck.providers as other
  where other.account = i.account and other.dispatch_paused_at is not null
  order by other.name
  limit 1) as paused on true
where not exists (
  select from coatcheck.providers as same
  where same.name = i.name and same.account = i.account and same.kind = i.kind)
order by i.name
on conflict (name) do update set account = excluded.account, kind = excluded.kind
  where (known.account, known.kind) is distinct from (excluded.account, excluded.kind)
