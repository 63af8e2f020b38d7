"""What no handler foresaw: the message comes back, doubt begins at once where a mark was committed, and poison stops spreading."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.queue.leases import Leases, Message
from coatcheck.seams import Point
from coatcheck.workers.loop import BAD_LEASES
from faults.child import KILLED
from faults.points import points
from faults.stage import LEASES_OVER_S, Stage
from faults.strike import Deed, Strike
from waiting import until


class Claims:
    """What workers of this process claimed at a time, and how often one message alone."""

    def __init__(self) -> None:
        self.largest = 0
        self.alone = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        really = Leases.claim

        async def claim(leases: Leases, *given: Any, **more: Any) -> list[Message]:
            found = await really(leases, *given, **more)
            self.largest = max(self.largest, len(found))
            self.alone += sum(message.is_suspect for message in found)
            assert len(found) == 1 or not any(message.is_suspect for message in found)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Leases, "claim", claim)
            yield


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


def test_a_message_that_kills_is_parked_and_of_its_neighbours_every_one_ends(stage: Stage) -> None:
    """All are in one worker's hands when it dies, twice; from then on the one that kills is alone."""
    poison, *neighbours = stage.enqueue(count=31)
    deadly = Strike(point=Point.D2_LOADED, operation=operation_text(OperationId(poison)))
    died = 0
    while (ended := stage.worker(deadly).ended()) == KILLED:
        died += 1
        assert died <= BAD_LEASES
        stage.database.move_time(LEASES_OVER_S)
    assert (ended, died) == (0, BAD_LEASES)
    parked = stage.one("select * from coatcheck.outbox where parked_at is not null")
    assert (parked["operation_id"], parked["park_reason"], parked["lease_count"]) == (poison, "lease_count", BAD_LEASES)
    assert parked["last_error"] == "lease_ended"
    assert parked["first_leased_at"] < parked["last_leased_at"] <= parked["parked_at"]
    assert stage.posts(poison) == 0
    ends = stage.rows("select delivery_state from coatcheck.operations where operation_id = any(%s)", neighbours)
    assert {row["delivery_state"] for row in ends} == {"delivered"}
    assert stage.rows("select lane from coatcheck.outbox where operation_id <> %s", poison) == []
    assert {stage.posts(one) for one in neighbours} == {1}
    stage.check()


def test_after_one_crash_nothing_is_handled_alone_and_after_two_all_ends_soon(stage: Stage) -> None:
    """Two workers that were killed from outside, with all in hand: suspects, and none of them a poison."""
    operations = stage.enqueue(count=60)
    crowd = "update coatcheck.outbox set leased_by = 'killed', leased_at = now(), lease_count = %s, visible_at = now() returning lane"
    stage.rows(crowd, 1)
    claims = Claims()
    with claims.watched():
        stage.work()
    assert claims.largest > 1
    assert claims.alone == 0
    more = stage.enqueue(count=60)
    stage.rows(crowd, 2)
    with claims.watched():
        stage.work()
    assert claims.alone == 60
    ends = stage.rows("select delivery_state, count(*) as n from coatcheck.operations group by 1")
    assert ends == [{"delivery_state": "delivered", "n": len(operations) + len(more)}]
    stage.check()


def test_where_another_worker_takes_the_suspect_nobody_else_goes_on_waiting_for_it(stage: Stage) -> None:
    """The first one has a look in hand that is held open for long; the suspect it waits for goes to a second one."""
    stage.enqueue({"queued_s": 0, "processing_s": 600})
    patient = stage.worker(until_idle=False, WAIT_S="50", OBSERVE_TIMEOUT_S="60", COATCHECK_CONCURRENCY__OBSERVE="2")
    until(lambda: stage.rows("select 1 from coatcheck.outbox where action = 'observe' and leased_by is not null"))
    (suspect,) = stage.enqueue()
    crowd = "update coatcheck.outbox set leased_by = 'killed', leased_at = now(), lease_count = 2, visible_at = now() where operation_id = %s returning lane"
    stage.rows(crowd, suspect)
    (fresh,) = stage.enqueue()
    until(lambda: stage.posts(fresh) == 1)
    # it heard of the suspect with the fresh one, and claims nothing more while it holds the look
    (other,) = stage.enqueue()
    helper = stage.worker(until_idle=False, COATCHECK_CONCURRENCY__OBSERVE="1")
    until(lambda: stage.operation(suspect)["delivery_state"] == "delivered")
    until(lambda: stage.operation(other)["delivery_state"] == "delivered")
    helper.kill()
    (late,) = stage.enqueue()
    until(lambda: stage.posts(late) == 1)
    assert patient.running
