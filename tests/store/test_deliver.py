"""The ends of deliveries: counters under the operation's lock, so that nothing is stranded and `delivered` never changes."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import OperationId, RenderState
from coatcheck.store.door import Status
from store.ground import Ground, look, stored


def failed(index: int) -> ev.OutputFailed:
    return ev.OutputFailed(index=index, cause="gone")


def expired(index: int) -> ev.SourceExpired:
    return ev.SourceExpired(index=index, delay_s=5)


def lanes(ground: Ground, operation_id: OperationId) -> dict[int, tuple[str, str | None, bool]]:
    return {
        row["lane"]: (row["action"], row["wait_reason"], row["parked_at"] is not None)
        for row in ground.all("outbox", operation_id)
    }


def test_a_stored_output_is_delivered_once_and_its_lane_is_gone(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id, outputs=2)
    assert ground.happen(operation_id, stored(0)).applied
    assert ground.operation(operation_id).delivery_state == "pending"
    assert lanes(ground, operation_id) == {2: ("deliver", None, False)}
    again = ground.step(operation_id, stored(0))
    assert ground.save(again)[0].status is Status.STALE
    assert ground.happen(operation_id, stored(1)).applied
    operation = ground.operation(operation_id)
    assert (operation.delivery_state, operation.delivered_count, operation.failed_count) == ("delivered", 2, 0)
    assert lanes(ground, operation_id) == {}
    for event in (stored(0), failed(0), expired(1)):
        assert ground.happen(operation_id, event).status is Status.STALE


def test_a_failed_delivery_is_parked_counted_once_and_may_still_arrive(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id, outputs=2)
    for _ in range(2):
        assert ground.happen(operation_id, failed(0)).applied
    operation = ground.operation(operation_id)
    assert (operation.delivery_state, operation.failed_count) == ("pending", 1)
    assert lanes(ground, operation_id)[1] == ("deliver", None, True)
    ground.happen(operation_id, stored(1))
    assert ground.operation(operation_id).delivery_state == "failed"
    assert ground.happen(operation_id, stored(0)).applied
    operation = ground.operation(operation_id)
    assert (operation.delivery_state, operation.delivered_count, operation.failed_count) == ("delivered", 2, 0)
    assert operation.render_state == "succeeded"


def test_a_batch_tells_applied_from_stale(ground: Ground) -> None:
    fresh, done, rendering, unknown_output = ground.enqueue_many(4)
    for operation_id in (fresh, done, unknown_output):
        ground.succeed(operation_id)
    steps = [ground.step(each, stored(0)) for each in (fresh, done)]
    ground.happen(done, stored(0))
    ground.happen(rendering, look(ground.accept(rendering), RenderState.RENDERING))
    steps.append(ground.step(unknown_output, stored(7)))
    assert [saved.status for saved in ground.save(*steps)] == [Status.APPLIED, Status.STALE, Status.STALE]


@pytest.mark.parametrize("ends", ["stored", "one fails"])
def test_outputs_that_finish_in_parallel_sessions_never_strand_pending(
    database: postgres.Database, ground: Ground, ends: str
) -> None:
    """Counting rows instead would be a write skew: each session sees the other's output still pending."""
    operation_ids = ground.enqueue_many(15)
    for operation_id in operation_ids:
        ground.succeed(operation_id, outputs=4)
    start = Barrier(4)

    def finish(index: int) -> list[bool]:
        with Ground(database, f"worker-{index}") as worker:
            event = failed(index) if ends == "one fails" and index == 2 else stored(index)
            steps = [worker.step(each, event) for each in operation_ids]
            start.wait(timeout=20)
            return [worker.save(step)[0].applied for step in steps]

    with ThreadPoolExecutor(4) as pool:
        assert all(all(applied) for applied in pool.map(finish, range(4)))
    for operation_id in operation_ids:
        assert ground.operation(operation_id).delivery_state == ("delivered" if ends == "stored" else "failed")


# -- the look that a fresh source needs --------------------------------------------------------------------------------


def test_an_expired_source_makes_a_look_due_and_tries_again_later(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id)
    assert ground.happen(operation_id, expired(0)).applied
    assert lanes(ground, operation_id) == {
        0: ("observe", "source_expired", False),
        1: ("deliver", "delivery_failed", False),
    }
    assert [message.lane for message in ground.claim(Action.OBSERVE)] == [0]
    assert ground.claim(Action.DELIVER) == []


def test_a_look_that_is_being_made_is_left_alone_and_a_waiting_one_is_hastened(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id, outputs=3)
    ground.happen(operation_id, expired(0))
    (message,) = ground.claim(Action.OBSERVE)
    ground.happen(operation_id, expired(1))
    lane = next(row for row in ground.all("outbox", operation_id) if row["lane"] == 0)
    assert (lane["lease_token"], lane["leased_by"]) == (message.lease_token, ground.worker)
    ground.sql(
        "update coatcheck.outbox set leased_by = null, leased_at = null, visible_at = now() + interval '1 h' where lane = 0"
    )
    ground.happen(operation_id, expired(2))
    (hastened,) = ground.claim(Action.OBSERVE)
    assert hastened.lease_token > message.lease_token
    # a claim that read the operation before this would take it for the present one
    assert hastened.expected_revision == ground.operation(operation_id).revision


def test_the_tries_of_a_delivery_count_across_expired_sources(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.succeed(operation_id)
    for count in (1, 2, 3):
        ground.happen(operation_id, expired(0))
        row = next(row for row in ground.all("outbox", operation_id) if row["lane"] == 1)
        assert row["wait_count"] == count
