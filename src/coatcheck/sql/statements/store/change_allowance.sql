-- purpose: another limit for an allowance that there is; what is held and charged stays as it is
-- guard: none: a limit below what is held and charged lets nothing new be held until it fits
-- index: allowances_pkey
update coatcheck.allowances as kept set
  ceiling = %(ceiling)s::numeric,
  set_by = %(actor)s::text,
  updated_at = coatcheck.lease_now()
where kept.tenant_id = %(tenant_id)s::text and kept.unit = %(unit)s::text
returning kept.tenant_id
