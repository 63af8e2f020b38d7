"""What lasts longer than its lease is renewed in time; a renewal that fails is counted, and what another may own is left alone."""

from dataclasses import replace
from datetime import datetime

import pytest

from coatcheck.config.sizing import RENEW_EVERY_S
from coatcheck.core.actions import Action
from coatcheck.queue.leases import Message
from coatcheck.seams import Clock
from coatcheck.workers.renewal import Renewer
from coatcheck.workers.tally import Tally
from store.ground import Ground


class Watch(Clock):
    """Boot time that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = 1000.0

    def boottime(self) -> float:
        return self.at


class Keeper:
    """A renewer with what it counts, and the time that it sees."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.watch = Watch()
        self.tally = Tally()
        self.renewer = Renewer(ground.leases, replace(ground.seams, clock=self.watch), self.tally)

    def after(self, seconds: float) -> None:
        """Later, the renewer looks at what it holds."""
        self.watch.at += seconds
        self.ground.run(self.renewer._tick())

    def end_of(self, message: Message) -> datetime:
        end: datetime = self.ground.one("outbox", message.operation_id)["visible_at"]
        return end


@pytest.fixture
def keeper(ground: Ground) -> Keeper:
    return Keeper(ground)


def looked_at(ground: Ground) -> Message:
    """The leased message of a look."""
    (one,) = ground.enqueue_many(1)
    ground.accept(one, "job-1")
    (message,) = ground.claim(Action.OBSERVE)
    return message


def test_a_look_that_lags_is_renewed_after_two_thirds_of_its_lease_and_not_before(keeper: Keeper) -> None:
    message = looked_at(keeper.ground)
    keeper.renewer.hold(message)
    first = keeper.end_of(message)
    keeper.after(0.5 * message.lease_s)
    assert keeper.end_of(message) == first
    keeper.after(0.2 * message.lease_s)
    assert keeper.end_of(message) > first
    assert keeper.tally.lease_renewal_failures == 0


def test_a_renewal_that_fails_is_counted_once_and_not_tried_again(keeper: Keeper) -> None:
    message = looked_at(keeper.ground)
    keeper.renewer.hold(message)
    keeper.ground.sql(
        "update coatcheck.outbox set lease_token = nextval('coatcheck.lease_tokens'), leased_by = 'other'"
    )
    for _ in range(3):
        keeper.after(0.7 * message.lease_s)
    assert keeper.tally.lease_renewal_failures == 1
    keeper.renewer.drop(message)
    assert keeper.ground.one("outbox", message.operation_id)["leased_by"] == "other"


def delivery_end(ground: Ground) -> datetime:
    (row,) = ground.sql("select visible_at from coatcheck.outbox where action = 'deliver'")
    end: datetime = row["visible_at"]
    return end


def test_a_delivery_is_renewed_as_often_as_the_sum_of_its_lease_says(keeper: Keeper) -> None:
    (one,) = keeper.ground.enqueue_many(1)
    keeper.ground.succeed(one)
    (message,) = keeper.ground.claim(Action.DELIVER)
    keeper.renewer.hold(message)
    first = delivery_end(keeper.ground)
    keeper.after(RENEW_EVERY_S - 1)
    assert delivery_end(keeper.ground) == first
    keeper.after(1)
    assert delivery_end(keeper.ground) > first
