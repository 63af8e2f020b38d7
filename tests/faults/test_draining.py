"""A worker that is asked to end: no new mark, no cut POST, nothing kept, and the rest given back at once."""

import pytest

from coatcheck.seams import Point
from faults.points import points
from faults.stage import LEASES_OVER_S, QUICK, Stage
from faults.strike import Deed, Strike
from waiting import until

LARGE = {"outputs": [{"type": "image/png", "bytes": 3_000_000}]}
SLOW_REPLY = {**QUICK, "create": {"kind": "stall", "seconds": 0.3}}
BOUND_S = 8.0
LEASED = "select from coatcheck.outbox where leased_by is not null"
LOCKED_OUT = (
    "select from pg_stat_activity where datname = current_database() and application_name like 'coatcheck%%'"
    " and wait_event_type = 'Lock'"
)


@pytest.mark.parametrize("point", [Point.D1_RECEIVED, Point.D4_MARK_COMMIT_SENT, Point.D9_RESPONSE_BYTES])
def test_a_dispatch_under_way_ends_in_order_and_none_begins(stage: Stage, point: Point) -> None:
    """With one operation at a time, and at every point: `test_halts`."""
    operations = stage.enqueue(SLOW_REPLY, count=3)
    worker = stage.worker(Strike(point=point, deed=Deed.TERMINATE), until_idle=False)
    assert worker.ended(within_s=BOUND_S + 10) == 0, worker.talk
    assert Point.D4_MARK_COMMIT_SENT not in worker.points_while_draining()
    assert stage.rows(LEASED) == []
    # whatever was sent is known, whatever was not is prepared: there is no doubt
    phases = {stage.operation(one)["phase"] for one in operations}
    assert phases <= {"prepared", "accepted"}
    assert len(stage.sim.posts) == sum(stage.operation(one)["phase"] == "accepted" for one in operations)
    stage.work()
    stage.check()
    assert {stage.operation(one)["delivery_state"] for one in operations} == {"delivered"}
    assert len(stage.sim.posts) == len(operations)


@pytest.mark.parametrize("action", ["dispatch", "observe"])
def test_what_is_claimed_while_the_signal_comes_is_given_back_untouched(stage: Stage, action: str) -> None:
    (one,) = stage.enqueue()
    if action == "observe":
        stage.worker(Strike(point=Point.O1_RECEIVED)).ended()
        stage.database.move_time(LEASES_OVER_S)
    before = stage.operation(one)
    with stage.database.connect() as gate, gate.transaction():
        gate.execute("lock table coatcheck.outbox in share row exclusive mode")
        worker = stage.worker(until_idle=False)
        until(lambda: stage.rows(LOCKED_OUT))
        worker.terminate()
        worker.says("draining")
    assert worker.ended(within_s=BOUND_S) == 0, worker.talk
    assert stage.operation(one) == before
    assert stage.one("select action, lease_count, leased_by from coatcheck.outbox") == {
        "action": action,
        "lease_count": 0,
        "leased_by": None,
    }
    stage.work()
    stage.check()
    assert stage.operation(one)["delivery_state"] == "delivered"


@pytest.mark.parametrize(
    ("point", "job"),
    [
        (Point.O3_GET_SENT, {"queued_s": 0, "processing_s": 60}),
        (Point.V5_BODY_BYTES, {**QUICK, **LARGE, "output": {"kind": "slow", "chunk_bytes": 100_000, "interval_s": 1}}),
    ],
    ids=["long poll", "delivery"],
)
def test_a_wait_is_cut_off_and_given_back(stage: Stage, point: Point, job: dict[str, object]) -> None:
    (one,) = stage.enqueue(job)
    worker = stage.worker(
        Strike(point=point, deed=Deed.TERMINATE), until_idle=False, WAIT_S="50", OBSERVE_TIMEOUT_S="60"
    )
    assert worker.ended(within_s=BOUND_S + 10) == 0, worker.talk
    assert stage.rows(LEASED) == []
    (lane,) = stage.rows("select * from coatcheck.outbox where operation_id = %s", one)
    assert (lane["action"], lane["lease_count"]) == ("observe" if point in points("O") else "deliver", 0)
    assert stage.rows("select from coatcheck.outbox where visible_at > clock_timestamp() + interval '1 s'") == []
    stage.check()
