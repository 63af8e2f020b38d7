"""Revisions, history and lanes through random lives: whatever happens in whatever order, by whatever worker, the invariants hold."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import postgres
from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, RemoteJobId, RenderState
from coatcheck.core.steps import Refusal, Step
from store.ground import ACCOUNT, Ground, look, stored
from store.invariants import assert_invariants

Making = Callable[[Ground, Operation], ev.Event | None]
JOBS = [RemoteJobId(f"job-{number}") for number in range(3)]


def replied(reply: Callable[[DispatchId], ev.Event]) -> Making:
    """A reply to the last dispatch, or nothing where there was none."""
    return lambda _, operation: None if operation.dispatch_id is None else reply(operation.dispatch_id)


def seen(state: RenderState, outputs: int = 0, charged: int | None = None) -> Making:
    return lambda _ground, operation: look(operation.remote_job_id or JOBS[0], state, outputs=outputs, charged=charged)


HAPPENINGS: dict[str, Making] = {
    "mark": lambda ground, _: ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT),
    "accepted": replied(lambda dispatch_id: ev.Accepted(dispatch_id=dispatch_id, remote_job_id=JOBS[0])),
    "accepted otherwise": replied(lambda dispatch_id: ev.Accepted(dispatch_id=dispatch_id, remote_job_id=JOBS[1])),
    "failed with id": replied(lambda dispatch_id: ev.FailedWithId(dispatch_id=dispatch_id, remote_job_id=JOBS[2])),
    "rejected": replied(lambda dispatch_id: ev.Rejected(dispatch_id=dispatch_id, status=422)),
    "throttled": replied(lambda dispatch_id: ev.Throttled(dispatch_id=dispatch_id, retry_after_s=1)),
    "not sent": replied(lambda dispatch_id: ev.NotSent(dispatch_id=dispatch_id, cause="refused")),
    "doubted": replied(lambda dispatch_id: ev.Doubted(dispatch_id=dispatch_id, cause="cut")),
    "lease ended": lambda _, operation: ev.LeaseEnded(),
    "rendering": seen(RenderState.RENDERING),
    "succeeded": seen(RenderState.SUCCEEDED, outputs=2),
    "failed": seen(RenderState.FAILED, charged=1),
    "accounted": lambda _, operation: replace(
        look(operation.remote_job_id or JOBS[0], operation.render_state, outputs=operation.output_count),
        waited=ev.Waited(reason="accounting"),
        credits=ev.Credits(charged=Decimal(3)),
    ),
    "lost": lambda *_: ev.NotFound(grace_s=0),
    "stalled": lambda *_: ev.Stalled(),
    "stored": lambda *_: stored(0),
    "stored too": lambda *_: stored(1),
    "undeliverable": lambda *_: ev.OutputFailed(index=1, cause="gone"),
    "expired": lambda *_: ev.SourceExpired(index=0, delay_s=1),
    "cancel": lambda *_: ev.Cancel(actor="p", reason="r"),
    "deadline": lambda *_: ev.DeadlinePassed(),
    "redispatch": lambda *_: ev.Redispatch(actor="p", reason="r", quiescent_at=None),
    "redispatch requested": lambda *_: ev.RequestRedispatch(actor="p", reason="r", quiescent_at=None),
    "adopt": lambda *_: ev.Adopt(actor="p", reason="r", remote_job_id=JOBS[0]),
    "adopt otherwise": lambda *_: ev.Adopt(actor="p", reason="r", remote_job_id=JOBS[1]),
    "prove absent": lambda _, operation: ev.ProveAbsent(actor="p", reason="r", quiescent_at=operation.read_at),
    "write off": lambda *_: ev.WriteOff(actor="p", reason="r", stalled=True),
    "write off released": lambda *_: ev.WriteOff(actor="p", reason="r", stalled=True, released=True),
    "redeliver": lambda *_: ev.Redeliver(actor="p", reason="r", indexes=(0, 1)),
    "note": lambda *_: ev.Note(actor="p", reason="r"),
    "reobserve": lambda *_: ev.Reobserve(actor="p", reason="r"),
}
COURSE = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(list(HAPPENINGS)), st.booleans()), min_size=6, max_size=25
)


@pytest.fixture(scope="module")
def lives(template: postgres.Template) -> Iterator[Ground]:
    with template.copy() as database, Ground(database) as ground:
        yield ground


@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(course=COURSE)
def test_every_life_keeps_the_invariants(lives: Ground, course: list[tuple[int, str, bool]]) -> None:
    """Two operations live at once; some steps are saved late, when another has overtaken them."""
    ground = lives
    ground.sql("truncate coatcheck.remote_jobs")
    ground.sql("delete from coatcheck.operations")
    ground.sql("update coatcheck.allowances set held = 0, charged = 0")
    ground.sql("update coatcheck.accounts set in_flight_count = 0")
    for table in ("outbox", "history", "specifications", "dispatches", "deliveries", "snapshots", "incidents"):
        ground.connection.execute(f"delete from coatcheck.{table}".encode())
    operation_ids = ground.enqueue_many(2, estimate="2")
    late: list[tuple[Step, Operation]] = []
    for number, happening, is_late in course:
        operation = ground.operation(operation_ids[number])
        event = HAPPENINGS[happening](ground, operation)
        step = advance(operation, event, operation.read_at) if event else None
        if step is None or isinstance(step, Refusal):
            continue
        if is_late:
            late.append((step, operation))
            continue
        ground.save(step, marked=operation)
        while late:
            overtaken, then = late.pop()
            ground.save(overtaken, marked=then)
    assert_invariants(ground.connection)


@pytest.mark.parametrize("table", ["history", "specifications"])
def test_what_was_written_down_is_never_changed(ground: Ground, table: str) -> None:
    ground.enqueue("k")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="append-only"):
        ground.connection.execute(f"update coatcheck.{table} set operation_id = operation_id".encode())


def test_a_revision_cannot_have_two_history_rows(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    with pytest.raises(psycopg.errors.UniqueViolation):
        ground.sql(
            "insert into coatcheck.history select * from coatcheck.history where operation_id = %s", operation_id
        )


def test_history_tells_the_whole_story_of_a_lost_reply(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=JOBS[0]))
    ground.happen(operation_id, look(JOBS[0], RenderState.SUCCEEDED, outputs=1))
    ground.happen(operation_id, stored(0))
    rows = sorted(ground.all("history", operation_id), key=lambda row: row["revision"])
    told = [
        (row["revision"], row["event"], row["actor"], row["to_phase"], row["to_render_state"], row["to_delivery_state"])
        for row in rows
    ]
    me = ground.worker
    assert told == [
        (0, "generation_requested", "postgres", "prepared", "none", "not_started"),
        (1, "dispatch_marked", me, "dispatching", "none", "not_started"),
        (2, "became_uncertain", "sweep", "uncertain", "none", "not_started"),
        (3, "generation_accepted", me, "accepted", "none", "not_started"),
        (4, "render_finished", me, "accepted", "succeeded", "pending"),
        (5, "output_delivered", me, "accepted", "succeeded", "delivered"),
    ]


BREAKING = {
    "S1": "delete from coatcheck.dispatches",
    "S2": "update coatcheck.dispatches set displaced = true",
    "S4, S5": "update coatcheck.remote_jobs set role = 'orphan'",
    "S7": "update coatcheck.operations set revision = revision + 1",
    "S11: a dispatch": "update coatcheck.dispatches set settled_at = null, charged = null, basis = null",
    "S11: what": "update coatcheck.allowances set charged = charged + 1",
    "S12: what": "delete from coatcheck.outbox where lane = 0",
    "S12: every": "delete from coatcheck.outbox where lane > 0",
    "the delivery": "update coatcheck.deliveries set state = 'failed'",
    "a snapshot": "update coatcheck.snapshots set remote_job_id = 'x'",
    "what is closed": "insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at) "
    "select operation_id, 0, 'dispatch', 'genace', 0, now() from coatcheck.operations where phase = 'cancelled'",
    "nothing exists": "delete from coatcheck.specifications",
}


@pytest.mark.parametrize("name", BREAKING)
def test_each_invariant_finds_what_breaks_it(database: postgres.Database, name: str) -> None:
    """The checker is tried on broken stores, so that its silence means something."""
    with Ground(database) as ground:
        waiting, done, cancelled = ground.enqueue_many(3)
        ground.mark(waiting)
        ground.succeed(done)
        ground.happen(cancelled, ev.Cancel(actor="p", reason="r"))
        assert_invariants(ground.connection)
        ground.connection.execute(BREAKING[name].encode())
        with pytest.raises(AssertionError, match=name):
            assert_invariants(ground.connection)
