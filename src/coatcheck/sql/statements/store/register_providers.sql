-- purpose: make configured providers known
-- guard: a pause that exists stays
-- index: providers_pkey
insert into coatcheck.providers as known (name, account, kind)
select i.name, i.account, i.kind
from unnest(%(name)s::text[], %(account)s::text[], %(kind)s::text[]) as i(name, account, kind)
order by i.name
on conflict (name) do update set account = excluded.account, kind = excluded.kind
  where (known.account, known.kind) is distinct from (excluded.account, excluded.kind)
