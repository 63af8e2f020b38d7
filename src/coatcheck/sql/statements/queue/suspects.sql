-- purpose: whether a message is due that is leased alone, for a worker that empties its hands for it
-- guard: none: reading decides nothing
-- index: outbox_suspect_idx
with wanted as (
  select * from unnest(%(action)s::text[], %(provider)s::text[], %(account)s::text[]) as want(action, provider, account)
)
select exists (
  select
  from wanted
  join coatcheck.outbox as held using (provider, action)
  where held.parked_at is null and held.leased_by is not null and held.lease_count >= 2
    and held.visible_at <= coatcheck.due_now()
    and (held.account is null or held.account = wanted.account)
    and held.schema_version = any(%(schema_version)s::smallint[])) as has_suspects
