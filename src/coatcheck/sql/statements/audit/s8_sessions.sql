-- purpose: S8: no session of ours holds a transaction open and does nothing in it
-- guard: none: reading decides nothing
-- index: none: pg_stat_activity, where other roles' sessions show a state only to members of pg_read_all_stats
select 'transaction_open' as kind, null::uuid as operation_id, null::text as tenant_id, null::uuid as dispatch_id,
  format('session %%s, %%s, has been %%s for %%s s', session.pid, session.application_name, session.state,
    round(extract(epoch from coatcheck.due_now() - session.state_change))) as detail
from pg_catalog.pg_stat_activity as session
where session.datname = current_database() and session.application_name like 'coatcheck %%'
  and session.state in ('idle in transaction', 'idle in transaction (aborted)')
  and session.state_change < coatcheck.due_now() - make_interval(secs => %(idle_s)s::float8)
order by session.pid
