"""What looks change: guarded by revision and remote id, never a final state, and the money settled once until the service says more."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId, RenderState
from coatcheck.core.steps import SnapshotStep
from coatcheck.store.door import Status
from store.ground import Ground, look, stored


def looked(ground: Ground, operation_id: OperationId, snapshot: ev.Snapshot) -> SnapshotStep:
    step = ground.step(operation_id, snapshot)
    assert isinstance(step, SnapshotStep)
    return step


def test_progress_moves_the_axis_the_word_the_revision_and_the_lane(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    job = ground.accept(operation_id)
    assert ground.happen(operation_id, look(job, RenderState.RENDERING, word="in_progress")).applied
    operation = ground.operation(operation_id)
    assert (operation.render_state, operation.remote_status, operation.revision) == ("rendering", "in_progress", 3)
    assert operation.final_at is None
    lane = ground.one("outbox", operation_id, "action", "expected_revision", "expected_remote_job_id")
    assert lane == {"action": "observe", "expected_revision": 3, "expected_remote_job_id": job}


@pytest.mark.parametrize(
    "outdated",
    [
        lambda step: replace(step, revision=step.revision - 1),
        lambda step: replace(step, revision=step.revision + 1),
        lambda step: replace(step, remote_job_id=RemoteJobId("another")),
    ],
    ids=["an older revision", "a later revision", "another job"],
)
def test_a_batch_saves_the_fresh_looks_and_reports_the_stale(
    ground: Ground, outdated: Callable[[SnapshotStep], SnapshotStep]
) -> None:
    first, second, third = ground.enqueue_many(3)
    steps = [looked(ground, each, look(ground.accept(each), RenderState.RENDERING)) for each in (first, second, third)]
    assert [saved.status for saved in ground.save(steps[0], outdated(steps[1]), steps[2])] == [
        *(Status.APPLIED, Status.STALE),
        Status.APPLIED,
    ]
    assert ground.operation(second).render_state == "none"
    assert ground.all("snapshots", second) == []


FINAL = [RenderState.SUCCEEDED, RenderState.FAILED, RenderState.MODERATED, RenderState.CANCELLED, RenderState.EXPIRED]


@pytest.mark.parametrize("then", [*FINAL, RenderState.RENDERING, RenderState.MISSING])
@pytest.mark.parametrize("state", FINAL)
def test_the_statement_itself_never_replaces_a_final_state(
    ground: Ground, state: RenderState, then: RenderState
) -> None:
    """Even a decider that read the final record and got it wrong is refused (S6)."""
    operation_id = ground.enqueue("k")
    first = looked(
        ground, operation_id, look(ground.accept(operation_id), state, outputs=int(state is RenderState.SUCCEEDED))
    )
    assert ground.save(first)[0].applied
    wrong = replace(first, revision=first.revision + 1, render_state=then, settles=then in FINAL, outputs=(), lanes=())
    assert ground.save(wrong)[0].status is (Status.APPLIED if then is state else Status.STALE)
    assert ground.operation(operation_id).render_state == state


def test_two_collectors_with_different_snapshots_of_one_job_leave_one_truth(
    database: postgres.Database, ground: Ground
) -> None:
    operation_ids = ground.enqueue_many(10)
    jobs = {each: ground.accept(each) for each in operation_ids}
    states = (RenderState.FAILED, RenderState.SUCCEEDED)
    steps = {
        state: [
            looked(ground, each, look(jobs[each], state, outputs=int(state is RenderState.SUCCEEDED)))
            for each in operation_ids
        ]
        for state in states
    }
    with ThreadPoolExecutor(2) as pool, Ground(database, "worker-2") as other:
        racing = [pool.submit(who.save, *steps[state]) for who, state in zip((ground, other), states, strict=True)]
        outcomes = [each.result(timeout=20) for each in racing]
    for number, operation_id in enumerate(operation_ids):
        applied = [state for state, saved in zip(states, outcomes, strict=True) if saved[number].applied]
        assert applied == [ground.operation(operation_id).render_state]


def test_success_opens_a_row_and_a_lane_for_every_output_and_closes_the_course(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id, outputs=3)
    operation = ground.operation(operation_id)
    assert (operation.output_count, operation.delivery_state) == (3, "pending")
    assert operation.final_at is not None
    assert [(row["output_index"], row["state"], row["source"]) for row in ground.all("deliveries", operation_id)] == [
        (index, "pending", f"http://a/{index}") for index in range(3)
    ]
    assert sorted((row["lane"], row["action"]) for row in ground.all("outbox", operation_id)) == [
        (lane, "deliver") for lane in (1, 2, 3)
    ]


def test_a_later_look_freshens_only_what_is_not_delivered(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id, outputs=3)
    ground.happen(operation_id, stored(0))
    ground.happen(operation_id, ev.OutputFailed(index=1, cause="gone"))
    job = ground.operation(operation_id).remote_job_id
    assert job is not None
    urls = tuple(
        (row["output_index"], row["source"])
        for row in ground.all("deliveries", operation_id)
        if row["state"] != "delivered"
    )
    snapshot = replace(look(job, RenderState.SUCCEEDED, outputs=3, host="b"), stored_urls=urls)
    step = looked(ground, operation_id, snapshot)
    every = replace(step, outputs=snapshot.outputs)
    assert ground.save(every)[0].applied
    rows = {row["output_index"]: (row["state"], row["source"]) for row in ground.all("deliveries", operation_id)}
    assert rows == {0: ("delivered", "http://a/0"), 1: ("failed", "http://b/1"), 2: ("pending", "http://b/2")}
    operation = ground.operation(operation_id)
    assert (operation.output_count, operation.delivered_count, operation.failed_count) == (3, 1, 1)
    assert sorted(row["lane"] for row in ground.all("outbox", operation_id)) == [2, 3]


# -- money -------------------------------------------------------------------------------------------------------------


def money(ground: Ground, operation_id: OperationId) -> tuple[Decimal | None, str | None]:
    row = ground.one("dispatches", operation_id)
    return row["charged"], row["basis"]


def test_a_final_render_settles_what_was_held_until_the_service_names_its_figure(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate="3")
    job = ground.accept(operation_id)
    ground.happen(operation_id, look(job, RenderState.RENDERING, charged=9))
    assert money(ground, operation_id) == (None, None)
    ground.happen(operation_id, look(job, RenderState.FAILED))
    assert money(ground, operation_id) == (Decimal(3), "assumed")
    settled_at = ground.one("dispatches", operation_id, "settled_at")
    owed = ev.Waited(reason="accounting")
    ground.happen(operation_id, replace(look(job, RenderState.FAILED, charged=5), waited=owed))
    assert money(ground, operation_id) == (Decimal(5), "service")
    refund = ev.Credits(charged=Decimal(5), refunded=Decimal(5))
    ground.happen(operation_id, replace(look(job, RenderState.FAILED), waited=owed, credits=refund))
    assert money(ground, operation_id) == (Decimal(0), "service")
    assert ground.one("dispatches", operation_id, "settled_at") == settled_at
    assert [row["event"] for row in ground.all("history", operation_id)][-2:] == ["refreshed", "refreshed"]


def test_a_figure_in_another_unit_counts_as_none_and_is_an_incident(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate="3", unit="seconds")
    job = ground.accept(operation_id)
    figure = ev.Credits(charged=Decimal(70), unit="credits")
    ground.happen(operation_id, replace(look(job, RenderState.FAILED), credits=figure))
    assert money(ground, operation_id) == (Decimal(3), "assumed")
    assert ground.one("incidents", operation_id, "kind", "boundary") == {"kind": "unit_differs", "boundary": "theirs"}


def test_a_look_without_a_figure_keeps_the_services_own(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate="3")
    ground.happen(operation_id, look(ground.accept(operation_id), RenderState.SUCCEEDED, outputs=1, charged=2))
    step = looked(
        ground,
        operation_id,
        replace(
            look(RemoteJobId(f"job-{operation_id}"), RenderState.SUCCEEDED, outputs=1, host="b"),
            stored_urls=((0, "http://a/0"),),
        ),
    )
    assert ground.save(step)[0].applied
    assert money(ground, operation_id) == (Decimal(2), "service")
    assert ground.one("snapshots", operation_id, "charged") == {"charged": Decimal(2)}
