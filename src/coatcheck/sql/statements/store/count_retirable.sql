-- purpose: one page of what retention would take, without taking it
-- guard: none: reading decides nothing
-- index: specifications_pkey, operations_pkey, outbox_pkey, dispatches_number, remote_jobs_operation_idx
with
-- include: retirable
sizes as (
  select octet_length(asked.specification_text) as bytes
  from coatcheck.specifications as asked
  join retirable using (operation_id)
)
select (select count(*) from page) as page_count, (select count(*) from chosen) as read_count,
  (select count(*) from retirable) as retired_count, 0 as entry_count,
  (select coalesce(sum(bytes), 0) from sizes)::bigint as specification_bytes,
  (select page.operation_id from page order by page.operation_id desc limit 1) as last_id
