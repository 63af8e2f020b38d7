"""A worker killed at any named point of any action: what survives, and how a healthy one ends it."""

import pytest

from coatcheck.seams import Point
from faults.child import KILLED
from faults.points import FATES, points
from faults.stage import QUICK, Stage
from faults.strike import Strike

TRICKLE = {"kind": "slow", "chunk_bytes": 10, "interval_s": 0.002}
LARGE = {"outputs": [{"type": "image/png", "bytes": 3_000_000}]}
STRIKES = [
    *(Strike(point=point) for letter in "DOVR" for point in points(letter)),
    *(Strike(point=Point.D7_REQUEST_BYTES, at_bytes=count) for count in (1, 100_000, 500_000)),
    *(Strike(point=Point.D9_RESPONSE_BYTES, at_bytes=count) for count in (1, 100)),
    *(Strike(point=Point.O4_RESPONSE_BYTES, at_bytes=count) for count in (1, 100)),
    *(Strike(point=Point.V5_BODY_BYTES, at_bytes=count) for count in (1, 1_500_000)),
]
JOBS = {
    # large enough that the kernel does not take it in one piece
    Point.D7_REQUEST_BYTES: {**QUICK, "error_message": "x" * 900_000},
    Point.D9_RESPONSE_BYTES: {**QUICK, "create": TRICKLE},
    Point.O4_RESPONSE_BYTES: {**QUICK, "look": TRICKLE},
    Point.V5_BODY_BYTES: {**QUICK, **LARGE},
}


def test_every_point_has_a_fate_and_is_struck() -> None:
    assert set(FATES) == set(Point)
    # the application's points and the spool's are struck in scenes of their own
    assert {strike.point for strike in STRIKES} | set(points("E")) | set(points("S")) == set(Point)


@pytest.mark.parametrize("strike", STRIKES, ids=lambda strike: f"{strike.point}-{strike.at_bytes}")
def test_a_worker_is_killed_and_the_next_one_ends_what_it_left(stage: Stage, strike: Strike) -> None:
    fate = FATES[strike.point]
    (one,) = stage.enqueue(JOBS.get(strike.point, QUICK))
    if strike.point in points("R"):
        in_doubt(stage)
    doomed = stage.worker(strike)
    assert doomed.ended() == KILLED, doomed.talk
    left = stage.operation(one)
    assert (left["phase"], left["render_state"], left["delivery_state"]) == fate.left
    for _ in range(2):  # the second time there is nothing left to do, however long one waits
        stage.finish()
        stage.check()
        end = stage.operation(one)
        assert (end["phase"], end["delivery_state"]) == (
            ("accepted", "delivered") if fate.delivered else ("uncertain", "not_started")
        )
        assert stage.posts(one) in fate.posts
        assert len(stage.dispatches(one)) == 1
        assert stage.events(one).count("render_finished") == fate.delivered


def in_doubt(stage: Stage) -> None:
    """A dispatch whose worker died while its reply was coming in, and whose lease is over."""
    doomed = stage.worker(Strike(point=Point.D9_RESPONSE_BYTES))
    assert doomed.ended() == KILLED, doomed.talk
    stage.database.move_time(120)
