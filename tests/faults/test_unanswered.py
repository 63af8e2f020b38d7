"""A worker that is told to end while a statement of its own goes unanswered: somebody holds a lock that it needs, and goes on holding it.

It waits some seconds and ends in order: what was not written is not there, and what it had leased comes back when the leases end.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coatcheck.seams import Point
from faults.stage import LEASES_OVER_S, Stage
from faults.strike import Deed, Strike
from waiting import until

ENDED_S = 40.0
"""Far beyond the 5 s that anything waits for an answer, and below for ever."""
WAITS = (
    "select from pg_stat_activity where datname = current_database() and application_name = %s"
    " and wait_event_type = 'Lock'"
)


@contextmanager
def held(stage: Stage, statement: bytes) -> Iterator[None]:
    """Locks that are held for the length of the block."""
    with stage.database.connect() as holder, holder.transaction(force_rollback=True):
        holder.execute(statement)
        yield


@pytest.mark.parametrize(
    ("waiting", "lock"),
    [
        ("coatcheck leases", b"lock table coatcheck.outbox in share row exclusive mode"),
        ("coatcheck marks", b"select from coatcheck.operations for update"),
        ("coatcheck marks", b"lock table coatcheck.allowances"),
    ],
    ids=["a claim", "a mark's row", "a mark's money"],
)
def test_what_waits_before_its_mark_is_given_up_and_sent_once_by_the_next_worker(
    stage: Stage, waiting: str, lock: bytes
) -> None:
    (one,) = stage.enqueue()
    with held(stage, lock):
        worker = stage.worker(until_idle=False)
        until(lambda: stage.rows(WAITS, waiting))
        worker.terminate()
        assert worker.ended(within_s=ENDED_S) == 0, worker.talk
    assert "never retrieved" not in worker.talk
    assert stage.operation(one)["phase"] == "prepared"
    assert not stage.sim.posts
    stage.finish()
    stage.check()
    assert stage.operation(one)["delivery_state"] == "delivered"
    assert stage.posts(one) == 1


def test_who_asks_whether_a_doubt_is_still_its_own_does_not_wait_for_ever(stage: Stage) -> None:
    (one,) = stage.enqueue()
    stage.worker(Strike(point=Point.D5_MARK_DURABLE)).ended()
    stage.database.move_time(LEASES_OVER_S)
    worker = stage.worker(Strike(point=Point.R1_SCANNED, deed=Deed.STOP), until_idle=False)
    worker.stopped()
    with held(stage, b"lock table coatcheck.outbox in share row exclusive mode"):
        worker.go_on()
        until(lambda: stage.rows(WAITS, "coatcheck leases"))
        worker.terminate()
        assert worker.ended(within_s=ENDED_S) == 0, worker.talk
    assert stage.operation(one)["phase"] == "dispatching"
    stage.finish()
    assert stage.operation(one)["phase"] == "uncertain"
    assert not stage.sim.posts
