-- purpose: an allowance that begins with what its tenant's dispatches hold and cost already
-- guard: its transaction locks out every writer of dispatches, so none moves money between the sums and the row that it must find
-- index: operations_key, dispatches_number, allowances_pkey
insert into coatcheck.allowances as kept (tenant_id, unit, ceiling, held, charged, set_by, updated_at)
select %(tenant_id)s::text, %(unit)s::text, %(ceiling)s::numeric,
  coalesce(sum(sent.held) filter (where sent.settled_at is null), 0), coalesce(sum(sent.charged), 0), %(actor)s::text,
  coatcheck.lease_now()
from coatcheck.operations as operation
join coatcheck.dispatches as sent using (operation_id)
where operation.tenant_id = %(tenant_id)s::text and sent.unit = %(unit)s::text
-- another transaction made it meanwhile: its sums are kept up to date since
on conflict (tenant_id, unit) do update set ceiling = excluded.ceiling, set_by = excluded.set_by, updated_at = excluded.updated_at
