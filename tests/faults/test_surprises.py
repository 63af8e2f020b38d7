"""What no handler foresaw: the message comes back, doubt begins at once where a mark was committed, and poison stops spreading."""

from coatcheck.seams import Point
from coatcheck.workers.loop import BAD_LEASES
from faults.child import KILLED
from faults.points import FATES, points
from faults.stage import LEASES_OVER_S, Stage
from faults.strike import Deed, Strike


def test_a_surprise_at_any_point_costs_doubt_after_the_mark_and_elsewhere_nothing(stage: Stage) -> None:
    struck = [point for letter in "DOV" for point in points(letter)]
    operations = stage.enqueue(count=20)
    stage.work(*(Strike(point=point, deed=Deed.RAISE) for point in struck))
    stage.check()
    ends = [stage.operation(one) for one in operations]
    doubtful = [end for end in ends if end["phase"] == "uncertain"]
    assert len(doubtful) == sum(not FATES[point].delivered for point in struck)
    assert sum(end["delivery_state"] == "delivered" for end in ends) == len(ends) - len(doubtful)
    causes = stage.rows("select cause from coatcheck.dispatches where outcome = 'uncertain'")
    assert {row["cause"] for row in causes} == {"unforeseen"}


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
