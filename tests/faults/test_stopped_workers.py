"""A worker that stands still beyond its lease and then goes on, as after a suspended machine: it may not spend, and may not overwrite."""

from typing import Any
from uuid import UUID

import pytest

from coatcheck.seams import Point
from faults.child import Child
from faults.stage import QUICK, Stage
from faults.strike import Deed, Strike
from waiting import until

PASSED = "select from coatcheck.dispatches where send_by_at < clock_timestamp()"


def stopped_at(stage: Stage, point: Point, *, send_s: str = "5") -> Child:
    """A worker that stands still at `point`."""
    sleeper = stage.worker(Strike(point=point, deed=Deed.STOP), SEND_S=send_s)
    sleeper.stopped()
    return sleeper


def goes_on_to_its_end(sleeper: Child) -> None:
    sleeper.go_on()
    assert sleeper.ended() == 0, sleeper.talk


def sent_once_in_the_end(stage: Stage, one: UUID) -> None:
    """On a busy machine so short a window may pass more than once; each time that is proven, and the money is spent once."""
    *unsent, last = [each["outcome"] for each in stage.dispatches(one)]
    assert set(unsent) == {"not_sent"}
    assert last == "accepted"
    assert stage.posts(one) == 1


def refused(stage: Stage, kind: str) -> int:
    """How many stale writes of a kind the workers counted."""
    return int(stage.one("select coalesce(sum((stale ->> %s)::int), 0) as count from coatcheck.workers", kind)["count"])


@pytest.mark.parametrize("point", [Point.D5_MARK_DURABLE, Point.D6_CONNECTING])
def test_a_worker_that_slept_beyond_its_send_window_sends_nothing_and_proves_it(stage: Stage, point: Point) -> None:
    (one,) = stage.enqueue()
    sleeper = stopped_at(stage, point, send_s="0.5")
    # the instant after which no first byte may leave lies behind, by the one clock that both can read
    until(lambda: stage.rows(PASSED))
    goes_on_to_its_end(sleeper)
    stage.check()
    sent_once_in_the_end(stage, one)


def test_a_worker_that_slept_beyond_its_lease_takes_the_doubt_back_and_sends_once(stage: Stage) -> None:
    (one,) = stage.enqueue()
    sleeper = stopped_at(stage, Point.D5_MARK_DURABLE, send_s="0.5")
    until(lambda: stage.rows(PASSED))
    stage.finish()
    assert stage.operation(one)["phase"] == "uncertain"
    assert stage.posts(one) == 0
    goes_on_to_its_end(sleeper)
    stage.check()
    assert stage.events(one)[1:4] == ["dispatch_marked", "became_uncertain", "not_sent"]
    sent_once_in_the_end(stage, one)


def test_a_reply_that_waited_for_its_sleeping_worker_ends_the_doubt(stage: Stage) -> None:
    (one,) = stage.enqueue()
    sleeper = stopped_at(stage, Point.D8_REQUEST_COMPLETE)
    until(lambda: [post for post in stage.sim.posts if post.reply_bytes])
    stage.finish()
    assert stage.operation(one)["phase"] == "uncertain"
    goes_on_to_its_end(sleeper)
    stage.check()
    assert stage.operation(one)["delivery_state"] == "delivered"
    assert stage.posts(one) == 1
    assert len(stage.dispatches(one)) == 1


@pytest.mark.parametrize(
    "look",
    [
        # what the sleeper holds is older, the same, or a final state that contradicts
        {"kind": "unknown_word", "word": "queued", "nth": 1},
        {"kind": "slow", "chunk_bytes": 1000, "nth": 1},
        {"kind": "unknown_word", "word": "failed", "nth": 1},
    ],
    ids=["older", "equal", "contradicting"],
)
def test_a_stale_snapshot_never_replaces_the_final_state_of_another_collector(
    stage: Stage, look: dict[str, Any]
) -> None:
    (one,) = stage.enqueue({**QUICK, "look": look})
    sleeper = stopped_at(stage, Point.O6_SAVE_COMMIT_SENT)
    stage.finish()
    final = stage.operation(one)
    assert (final["render_state"], final["delivery_state"]) == ("succeeded", "delivered")
    goes_on_to_its_end(sleeper)
    stage.check()
    assert stage.operation(one) == final
    assert refused(stage, "snapshot") == 1
    assert stage.events(one).count("render_finished") == 1


def test_a_stale_delivery_is_refused_and_leaves_one_object(stage: Stage) -> None:
    (one,) = stage.enqueue()
    sleeper = stopped_at(stage, Point.V9_SAVE_COMMIT_SENT)
    stage.finish()
    final = stage.operation(one)
    assert final["delivered_count"] == 1
    goes_on_to_its_end(sleeper)
    stage.check()
    assert stage.operation(one) == final
    assert refused(stage, "deliver") == 1
    assert stage.events(one).count("output_delivered") == 1
