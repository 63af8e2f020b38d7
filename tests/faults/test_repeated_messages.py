"""A message may be delivered again at any time: whatever a repeated dispatch message meets, it is no permission for another POST."""

from uuid import UUID

from coatcheck.seams import Point
from faults.child import KILLED
from faults.stage import Stage
from faults.strike import Strike

AGAIN = """
update coatcheck.outbox set action = 'dispatch', visible_at = now() - interval '1 s', leased_by = null, leased_at = null,
  parked_at = null, park_reason = null, lease_token = nextval('coatcheck.lease_tokens')
where lane = 0 returning operation_id
"""


def killed_at(stage: Stage, point: Point) -> UUID:
    """An operation whose worker died there, and whose dispatch message is there once more."""
    (one,) = stage.enqueue()
    doomed = stage.worker(Strike(point=point))
    assert doomed.ended() == KILLED, doomed.talk
    assert stage.one(AGAIN)["operation_id"] == one
    return one


def test_where_the_remote_job_is_known_it_becomes_a_look(stage: Stage) -> None:
    one = killed_at(stage, Point.D13_SAVED)
    stage.work()
    stage.check()
    assert stage.events(one)[2:4] == ["generation_accepted", "observed_instead"]
    assert stage.operation(one)["delivery_state"] == "delivered"
    assert stage.posts(one) == 1


def test_where_a_mark_is_open_it_becomes_doubt(stage: Stage) -> None:
    one = killed_at(stage, Point.D5_MARK_DURABLE)
    stage.work()
    stage.check()
    assert stage.events(one)[1:] == ["dispatch_marked", "became_uncertain"]
    assert stage.posts(one) == 0


def test_where_the_doubt_is_known_it_is_set_aside_again(stage: Stage) -> None:
    one = killed_at(stage, Point.D11_PARSED)
    stage.finish()
    assert stage.operation(one)["phase"] == "uncertain"
    assert stage.one(AGAIN)["operation_id"] == one
    stage.work()
    stage.check()
    assert stage.one("select park_reason from coatcheck.outbox")["park_reason"] == "uncertain"
    assert stage.posts(one) == 1
