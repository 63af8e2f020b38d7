-- purpose: fill the store with operations that are over, delivered and without a lane, numbered from first to last
-- guard: none: written past the other statements, because there are many
-- index: all of operations'
with gone as (
  select coatcheck.new_id() as operation_id, gen_random_uuid() as dispatch_id, n, coatcheck.lease_now() as at,
    '{"prompt":"crowd ' || n || '"}' as specification_text
  from generate_series(%(first)s::integer, %(last)s::integer) as n
), specified as (
  insert into coatcheck.specifications (operation_id, specification_text)
  select gone.operation_id, gone.specification_text from gone
)
insert into coatcheck.operations (operation_id, tenant_id, operation_key, provider, account, specification_hash, phase,
  authorised_by, dispatch_id, dispatch_count, render_state, remote_status, delivery_state, output_count, delivered_count,
  remote_job_id, revision, accepted_at, final_at, created_at, updated_at)
select gone.operation_id, 'bench ' || mod(gone.n, %(tenants)s::integer), 'crowd ' || gone.n, %(provider)s::text, %(provider)s::text,
  sha256(convert_to(gone.specification_text, 'UTF8')), 'accepted', 'bench', gone.dispatch_id, 1, 'succeeded', 'succeeded',
  'delivered', 1, 1, 'crowd ' || gone.n, 4, gone.at, gone.at, gone.at, gone.at
from gone
