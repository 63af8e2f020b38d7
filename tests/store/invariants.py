"""The invariants of the store as queries that must find nothing: any test may ask for them after any story.

Each query returns the rows that break it. `assert_invariants(connection)` runs them all in one snapshot and names what it found.
"""

from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

FINAL: LiteralString = "('succeeded', 'failed', 'moderated', 'cancelled', 'expired')"
SPENDS: LiteralString = "outcome not in ('not_sent', 'throttled', 'proven_absent') and not displaced"

QUERIES: dict[str, LiteralString] = {
    "S1: what was marked has its dispatch, and a dispatch that is open its mark": """
        select operation_id, phase, dispatch_id from coatcheck.operations as o
        where phase not in ('prepared', 'cancelled') and not exists (
          select from coatcheck.dispatches as d where d.dispatch_id = o.dispatch_id and d.operation_id = o.operation_id)
        union all
        select operation_id, outcome, dispatch_id from coatcheck.dispatches as d
        where outcome = 'open' and not displaced and not exists (
          select from coatcheck.operations as o where o.operation_id = d.operation_id and o.dispatch_id = d.dispatch_id)""",
    "S2: one authorisation, at most one dispatch that may have been sent": f"""
        select operation_id, authorisation, count(*) from coatcheck.dispatches where {SPENDS}
        group by operation_id, authorisation having count(*) > 1
        union all
        select operation_id, authorisation, number from coatcheck.dispatches where displaced""",
    "S2: no dispatch under an authorisation that nobody gave": """
        select d.operation_id, d.authorisation, o.authorisation as given
        from coatcheck.dispatches as d join coatcheck.operations as o using (operation_id)
        where d.authorisation > o.authorisation or d.number > o.dispatch_count""",
    "S3: a lease that ends in dispatching leads only to uncertain": """
        select operation_id, revision, event, to_phase from coatcheck.history
        where from_phase = 'dispatching' and actor = 'sweep' and to_phase <> 'uncertain'
        union all
        select operation_id, revision, event, to_phase from coatcheck.history
        where from_phase = 'dispatching' and to_phase = 'prepared' and event not in ('throttled', 'not_sent')""",
    "S4, S5: the remote job of an operation is its own, in the account that made it": """
        select o.operation_id, o.account, o.remote_job_id, j.operation_id as owner, j.role
        from coatcheck.operations as o
        left join coatcheck.remote_jobs as j on j.account = o.account and j.remote_job_id = o.remote_job_id
        where o.remote_job_id is not null and (j.operation_id is distinct from o.operation_id or j.role <> 'owner')
        union all
        select j.operation_id, j.account, j.remote_job_id, j.operation_id, j.role
        from coatcheck.remote_jobs as j
        where j.role = 'owner' and not exists (select from coatcheck.operations as o
          where o.operation_id = j.operation_id and o.account = j.account and o.remote_job_id = j.remote_job_id)""",
    "S6: a final render state and a delivered output never change": f"""
        select operation_id, revision, from_render_state, to_render_state from coatcheck.history
        where from_render_state in {FINAL} and to_render_state <> from_render_state
          or from_delivery_state = 'delivered' and to_delivery_state <> 'delivered'""",
    "S7: revisions are 0, 1, 2, ... with one history row each, and each begins where the former ended": """
        select o.operation_id, o.revision, count(h.revision), min(h.revision), max(h.revision)
        from coatcheck.operations as o left join coatcheck.history as h using (operation_id)
        group by o.operation_id, o.revision
        having count(h.revision) <> o.revision + 1 - coalesce(min(h.revision), 0) or max(h.revision) <> o.revision
          or (min(h.revision) <> 0 and (array_agg(h.event order by h.revision))[1] <> 'retired')
        union all
        select operation_id, revision, 0, 0, 0 from (
          select operation_id, revision, event, from_phase, from_render_state, from_delivery_state,
            lag((to_phase, to_render_state, to_delivery_state)) over (partition by operation_id order by revision) as former
          from coatcheck.history) as chain
        where revision > 0 and (from_phase, from_render_state, from_delivery_state) is distinct from former
          and (event <> 'retired' or former is not null)
        union all
        select operation_id, revision, 1, 1, 1
        from coatcheck.operations as o join coatcheck.history as h using (operation_id, revision)
        where (o.phase, o.render_state, o.delivery_state) is distinct from (h.to_phase, h.to_render_state, h.to_delivery_state)""",
    "S11: a dispatch that created nothing costs nothing, and a final render is settled": f"""
        select operation_id, dispatch_id, outcome, charged from coatcheck.dispatches
        where outcome in ('rejected', 'throttled', 'not_sent') and charged is distinct from 0
        union all
        select o.operation_id, d.dispatch_id, d.outcome, d.charged
        from coatcheck.operations as o join coatcheck.dispatches as d using (dispatch_id)
        where o.render_state in {FINAL} and d.settled_at is null""",
    "S11: what is held and charged of an allowance is the sum over the tenant's dispatches": """
        select a.tenant_id, a.unit, a.held, a.charged, sums.held as held_now, sums.charged as charged_now
        from coatcheck.allowances as a
        cross join lateral (
          select coalesce(sum(d.held) filter (where d.settled_at is null), 0) as held, coalesce(sum(d.charged), 0) as charged
          from coatcheck.dispatches as d join coatcheck.operations as o using (operation_id)
          where o.tenant_id = a.tenant_id and d.unit = a.unit) as sums
        where (a.held, a.charged) is distinct from (sums.held, sums.charged)""",
    "S11: an account with a limit counts what is in flight": """
        select a.account, a.in_flight_count, flights.number
        from coatcheck.accounts as a
        cross join lateral (
          select count(*) as number from coatcheck.operations as o
          where o.account = a.account and coatcheck.is_in_flight(o.phase, o.render_state)) as flights
        where a.max_in_flight is not null and a.in_flight_count <> flights.number""",
    "S12: what is not closed has its course, live or parked": """
        select o.operation_id, o.phase, o.render_state from coatcheck.operations as o
        where (o.phase in ('prepared', 'dispatching', 'uncertain')
            or o.phase in ('accepted', 'submission_failed') and o.final_at is null)
          and not exists (select from coatcheck.outbox as m where m.operation_id = o.operation_id and m.lane = 0)""",
    "S12: every undelivered output of a succeeded render has its lane, live or parked": """
        select d.operation_id, d.output_index, d.state
        from coatcheck.deliveries as d join coatcheck.operations as o using (operation_id)
        where d.state <> 'delivered' and o.render_state = 'succeeded' and o.phase <> 'abandoned'
          and not exists (select from coatcheck.outbox as m where m.operation_id = d.operation_id and m.lane = d.output_index + 1)""",
    "the delivery axis is the count of its outputs": """
        select o.operation_id, o.output_count, o.delivered_count, o.failed_count
        from coatcheck.operations as o left join coatcheck.deliveries as d using (operation_id)
        group by o.operation_id
        having (o.output_count, o.delivered_count, o.failed_count) is distinct from (count(d.output_index)::integer,
          (count(*) filter (where d.state = 'delivered'))::integer, (count(*) filter (where d.state = 'failed'))::integer)""",
    "a snapshot tells of the remote job of its operation": """
        select s.operation_id, s.remote_job_id, o.remote_job_id as known
        from coatcheck.snapshots as s join coatcheck.operations as o using (operation_id)
        where s.remote_job_id is distinct from o.remote_job_id""",
    "what is closed before a POST or written off has no message": """
        select o.operation_id, o.phase, m.lane, m.action
        from coatcheck.operations as o join coatcheck.outbox as m using (operation_id)
        where o.phase in ('rejected', 'cancelled', 'abandoned')""",
    "nothing exists without its operation": """
        select 'outbox' as what, operation_id from coatcheck.outbox where operation_id not in (select operation_id from coatcheck.operations)
        union all
        select 'history', operation_id from coatcheck.history where operation_id not in (select operation_id from coatcheck.operations)
        union all
        select 'specifications', operation_id from coatcheck.operations
        where operation_id not in (select operation_id from coatcheck.specifications)
          and operation_id not in (select operation_id from coatcheck.history where event = 'retired')""",
}


def violations(connection: psycopg.Connection[Any]) -> dict[str, list[dict[str, Any]]]:
    """What breaks an invariant, by its name; empty when all hold."""
    found = {}
    with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("set transaction isolation level repeatable read")
        for name, query in QUERIES.items():
            if rows := cursor.execute(query).fetchall():
                found[name] = rows
    return found


def assert_invariants(connection: psycopg.Connection[Any], *, but: tuple[str, ...] = ()) -> None:
    """Everything holds, apart from the invariants whose names begin with a word in `but`, which the story broke on purpose."""
    found = {name: rows for name, rows in violations(connection).items() if not (but and name.startswith(but))}
    assert not found, found
