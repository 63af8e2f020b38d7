"""What no handler foresaw: the message comes back, doubt begins at once where a mark was committed, and poison stops spreading."""

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.seams import Point
from coatcheck.workers.loop import BAD_LEASES
from faults.child import KILLED
from faults.points import points
from faults.stage import LEASES_OVER_S, Stage
from faults.strike import Deed, Strike

AFTER_THE_MARK = points("D")[4:9]
"""Where the mark is committed and no whole reply is here: doubt. From then on what the reply says is saved all the same."""
STRUCK = [point for letter in "DOV" for point in points(letter) if point is not Point.V4_CONNECTED]
"""All but the one that lies inside aiohttp, which loses the connection when its observer raises."""


def test_a_surprise_at_any_point_costs_doubt_after_the_mark_and_elsewhere_nothing(stage: Stage) -> None:
    assert AFTER_THE_MARK[0] is Point.D5_MARK_DURABLE
    assert AFTER_THE_MARK[-1] is Point.D9_RESPONSE_BYTES
    operations = dict(zip(STRUCK, stage.enqueue(count=len(STRUCK)), strict=True))
    strikes = [
        Strike(point=point, deed=Deed.RAISE, operation=operation_text(OperationId(one)))
        for point, one in operations.items()
    ]
    stage.work(*strikes)
    stage.check()
    for point, one in operations.items():
        end = stage.operation(one)
        doubtful = point in AFTER_THE_MARK
        assert (end["phase"], end["delivery_state"]) == (
            ("uncertain", "not_started") if doubtful else ("accepted", "delivered")
        ), point
        assert stage.posts(one) in ({0, 1} if doubtful else {1})
        (dispatch,) = stage.dispatches(one)
        assert dispatch["cause"] == ("unforeseen" if doubtful else None)


def test_a_message_that_kills_its_worker_is_set_aside_after_a_few(stage: Stage) -> None:
    (poison,) = stage.enqueue()
    deadly = Strike(point=Point.D2_LOADED)
    for _ in range(BAD_LEASES):
        victim = stage.worker(deadly)
        assert victim.ended() == KILLED, victim.talk
        stage.database.move_time(LEASES_OVER_S)
    survivor = stage.worker(deadly)
    assert survivor.ended() == 0, survivor.talk
    assert stage.one("select park_reason from coatcheck.outbox")["park_reason"] == "lease_count"
    assert stage.operation(poison)["phase"] == "prepared"
    (other,) = stage.enqueue()
    stage.work()
    stage.check()
    assert stage.operation(other)["delivery_state"] == "delivered"
    assert stage.posts(poison) == 0
