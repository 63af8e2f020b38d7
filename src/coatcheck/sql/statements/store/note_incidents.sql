-- purpose: write protocol faults down; a repeated kind raises its count
-- guard: one row per operation and kind
-- index: incidents_pkey
insert into coatcheck.incidents as held (operation_id, kind, boundary, detail, first_at, last_at)
select i.operation_id, i.kind, i.boundary, i.detail, coatcheck.lease_now(), coatcheck.lease_now()
from unnest(%(operation_id)s::uuid[], %(kind)s::text[], %(boundary)s::text[], %(detail)s::text[])
  as i(operation_id, kind, boundary, detail)
order by i.operation_id, i.kind
on conflict (operation_id, kind) do update set count = held.count + 1, detail = excluded.detail, last_at = excluded.last_at
