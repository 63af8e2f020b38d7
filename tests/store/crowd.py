"""A crowd of sound operations, written past the statements because there are many: all of them accepted, most rendered and delivered."""

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
from bench.size.crowd import COURSE

_CROWD: Sequence[LiteralString] = (
    COURSE,
    """create temporary table crowd as
       select coatcheck.new_id() as operation_id, gen_random_uuid() as dispatch_id, n, 't' || n %% 7 as tenant_id, n %% 10 <> 0 as is_done,
         '{"n":' || n || '}' as specification_text
       from generate_series(1, %(count)s::integer) as n""",
    """insert into coatcheck.operations (operation_id, tenant_id, operation_key, provider, account, specification_hash, phase, authorised_by,
         dispatch_id, dispatch_count, render_state, remote_status, delivery_state, output_count, delivered_count, remote_job_id, revision,
         estimate, accepted_at, final_at, created_at, updated_at)
       select operation_id, tenant_id, 'crowd' || n, 'genace', 'genace', sha256(specification_text::bytea), 'accepted', 'crowd', dispatch_id,
         1, case when is_done then 'succeeded' else 'none' end, case when is_done then 'succeeded' end,
         case when is_done then 'delivered' else 'not_started' end, is_done::integer, is_done::integer, 'job-' || n,
         case when is_done then 4 else 2 end, 2, now(), case when is_done then now() end, now(), now()
       from crowd""",
    "insert into coatcheck.specifications (operation_id, specification_text) select operation_id, specification_text from crowd",
    """insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at, send_by_at,
         quiescent_at, ended_at, stage, outcome, http_status, remote_job_id, held, charged, basis, settled_at)
       select dispatch_id, operation_id, 1, 1, 'crowd', 'genace', 'crowd', now(), now(), now(), now(), 'body_received', 'accepted', 201,
         'job-' || n, 2, case when is_done then 2 end, case when is_done then 'service' end, case when is_done then now() end
       from crowd""",
    """insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
       select 'genace', 'job-' || n, operation_id, dispatch_id, 'owner', now() from crowd""",
    """insert into coatcheck.snapshots (operation_id, remote_job_id, remote_status, seen_at)
       select operation_id, 'job-' || n, 'succeeded', now() from crowd where is_done""",
    """insert into coatcheck.deliveries (operation_id, output_index, state, source, uri, sha256, bytes, updated_at)
       select operation_id, 0, 'delivered', 'http://a/0', 'file:///s/' || left(encode(sha256(tenant_id::bytea), 'hex'), 32) || '/x/0-0.png',
         repeat('0', 64), 7, now()
       from crowd where is_done""",
    """insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, expected_remote_job_id, visible_at)
       select operation_id, 0, 'observe', 'genace', 'genace', 2, 'job-' || n, now() from crowd where not is_done""",
    """insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state, to_render_state,
         from_delivery_state, to_delivery_state, dispatch_id, action)
       select operation_id, revision, event, 'crowd', now(), from_phase, to_phase, from_render_state, to_render_state, from_delivery_state,
         to_delivery_state, case when revision > 0 then dispatch_id end, action
       from crowd
       cross join course
       where is_done or revision < 3""",
    """insert into coatcheck.allowances (tenant_id, unit, held, charged, set_by, updated_at)
       select crowd.tenant_id, 'credits', sum(2) filter (where not is_done), sum(2) filter (where is_done), 'crowd', now()
       from crowd group by crowd.tenant_id""",
    "drop table crowd, course",
)


def gather(connection: psycopg.Connection[Any], count: int) -> None:
    """Let so many operations be there, in a database that has none."""
    for text in _CROWD:
        connection.execute(text, {"count": count} if "%(" in text else None)
    connection.execute("analyze")
