"""Outages of the database never spend the count of a message, however often; leases that end otherwise do."""

from dataclasses import replace
from typing import Any

import pytest

import postgres
from coatcheck.core.actions import Action
from coatcheck.errors import Unavailable
from coatcheck.queue.leases import Leases, Message
from coatcheck.seams import Clock, Seams
from coatcheck.workers.lessor import Capacity, Lessor
from coatcheck.workers.outages import KEPT_S, Outages
from faults.stage import LEASES_OVER_S
from store.ground import Ground

ROUNDS = 7


class SharedClock(Clock):
    """Boot time that goes with the database's, as both do outside of a test."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def boottime(self) -> float:
        return self.at


class FailingLeases(Leases):
    """The real statement, except while the database is away."""

    is_away = False

    async def claim(self, *given: Any, **more: Any) -> list[Message]:
        if self.is_away:
            raise Unavailable("the database is away")
        return await super().claim(*given, **more)


@pytest.mark.parametrize("away", [True, False], ids=["outages", "deaths"])
def test_leases_that_end_in_an_outage_are_not_counted_and_others_are(database: postgres.Database, away: bool) -> None:
    with Ground(database) as ground:
        operation_id = ground.enqueue("k")
        ground.accept(operation_id)
        clock = SharedClock()
        leases = FailingLeases(ground.line, "worker-2")
        capacities = {Action.OBSERVE: Capacity(places=10, lease_s=45, accounts={"genace": "genace"})}
        lessor = Lessor(leases, ground.line, capacities, replace(Seams.real(), clock=clock))
        counts = []
        for _ in range(ROUNDS):
            (work,) = ground.run(lessor.claim())
            counts.append(work.message.lease_count)
            # the worker's hands are empty again, and it could not say so
            lessor.done(work.message)
            leases.is_away = away
            if away:
                with pytest.raises(Unavailable):
                    ground.run(lessor.claim())
            database.move_time(LEASES_OVER_S)
            clock.at += LEASES_OVER_S
            leases.is_away = False
        assert counts == ([1] * ROUNDS if away else list(range(1, ROUNDS + 1)))
        told = {"last_error": None} if away else {"last_error": "lease_ended"}
        assert ground.one("outbox", operation_id, "last_error") == told


def test_an_outage_is_remembered_from_the_last_claim_before_it_to_the_first_after_it() -> None:
    outages = Outages()
    outages.failed()
    assert outages.away_s(5.0) is None  # nothing is known of the time before the first claim
    outages.reached(10.0)
    assert outages.away_s(11.0) is None
    outages.reached(20.0)
    outages.failed()
    outages.failed()
    assert outages.away_s(80.0) == (60.0, 0.0)
    outages.reached(80.0)
    outages.reached(81.0)
    assert outages.away_s(90.0) == (70.0, 10.0)
    assert outages.away_s(81.0 + KEPT_S) is None
