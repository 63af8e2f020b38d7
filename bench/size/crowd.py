"""Millions of operations that are over, whole as workers leave them: evidence, history, snapshot and output to each."""

from collections.abc import Callable
from typing import Any, Final, LiteralString

import psycopg

TENANTS = 1000
_BATCH = 100_000
COURSE: Final[LiteralString] = """create temporary table course as select * from (values
         (0, 'generation_requested', null, 'prepared', null, 'none', null, 'not_started', null),
         (1, 'dispatch_marked', 'prepared', 'dispatching', 'none', 'none', 'not_started', 'not_started', 'dispatch'),
         (2, 'generation_accepted', 'dispatching', 'accepted', 'none', 'none', 'not_started', 'not_started', 'reconcile'),
         (3, 'render_finished', 'accepted', 'accepted', 'none', 'succeeded', 'not_started', 'pending', 'observe'),
         (4, 'output_delivered', 'accepted', 'accepted', 'succeeded', 'succeeded', 'pending', 'delivered', 'deliver')
       ) as entry(revision, event, from_phase, to_phase, from_render_state, to_render_state, from_delivery_state, to_delivery_state, action)"""
"""Makes the history of an operation that was delivered, without its instants and ids, as a table to join with."""
_CROWD: tuple[LiteralString, ...] = (
    COURSE,
    """create temporary table crowd as
       select coatcheck.new_id() as operation_id, coatcheck.new_id() as dispatch_id, coatcheck.lease_now() as at, n,
         'tenant ' || mod(n, %(tenants)s::integer) as tenant_id, 'job ' || n as remote_job_id,
         '{"prompt":"' || repeat(md5(n::text), 12) || '"}' as specification_text
       from generate_series(%(first)s::integer, %(last)s::integer) as n""",
    """insert into coatcheck.operations (operation_id, tenant_id, operation_key, provider, account, specification_hash, phase, authorised_by,
         dispatch_id, dispatch_count, render_state, remote_status, delivery_state, output_count, delivered_count, remote_job_id, revision,
         accepted_at, final_at, created_at, updated_at)
       select operation_id, tenant_id, 'crowd ' || n, 'bench', 'bench', sha256(convert_to(specification_text, 'UTF8')), 'accepted', 'bench',
         dispatch_id, 1, 'succeeded', 'succeeded', 'delivered', 1, 1, remote_job_id, 4, at, at, at, at
       from crowd""",
    "insert into coatcheck.specifications (operation_id, specification_text) select operation_id, specification_text from crowd",
    """insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at, send_by_at,
         quiescent_at, ended_at, stage, marks_ms, outcome, http_status, remote_job_id, reply, charged, basis, settled_at)
       select dispatch_id, operation_id, 1, 1, 'bench', 'bench', 'bench', at, at, at, at, 'body_received', '{"begun": 0, "sent": 1.5}',
         'accepted', 201, remote_job_id, convert_to('{"id":"' || remote_job_id || '","status":"queued"}', 'UTF8'), 0, 'assumed', at
       from crowd""",
    """insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
       select 'bench', remote_job_id, operation_id, dispatch_id, 'owner', at from crowd""",
    """insert into coatcheck.snapshots (operation_id, remote_job_id, remote_status, seen_at)
       select operation_id, remote_job_id, 'succeeded', at from crowd""",
    """insert into coatcheck.deliveries (operation_id, output_index, state, source, uri, sha256, bytes, updated_at)
       select operation_id, 0, 'delivered', 'https://outputs.example/' || remote_job_id || '?signature=' || md5(remote_job_id),
         'file:///outputs/' || left(encode(sha256(convert_to(tenant_id, 'UTF8')), 'hex'), 32) || '/' || operation_id || '/0.png',
         encode(specification_hash, 'hex'), 7, at
       from crowd join coatcheck.operations using (operation_id, tenant_id, dispatch_id, remote_job_id)""",
    """insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state, to_render_state,
         from_delivery_state, to_delivery_state, dispatch_id, action, lease_count, leased_at)
       select operation_id, revision, event, 'bench-0123456789ab', at, from_phase, to_phase, from_render_state, to_render_state,
         from_delivery_state, to_delivery_state, case when revision > 0 then dispatch_id end, action, 1, at
       from crowd
       cross join course""",
    "drop table crowd, course",
)
_WORKER = """
insert into coatcheck.workers (incarnation, version, roles, started_at, seen_at) values
  ('bench-0123456789ab', '0', '{dispatch,observe,deliver,reconcile}', now(), now()) on conflict do nothing
"""


def gather(connection: psycopg.Connection[Any], count: int, told: Callable[[str], None]) -> None:
    """Let so many more be there."""
    connection.execute(_WORKER)
    for first in range(1, count + 1, _BATCH):
        last = min(count, first + _BATCH - 1)
        parameters = {"first": first, "last": last, "tenants": TENANTS}
        for text in _CROWD:
            connection.execute(text, parameters if "%(" in text else None)
        told(f"{last} of {count} operations are there")
    connection.execute("vacuum (analyze)")
