"""Workers and applications killed at any instant while there is plenty to do: nothing acknowledged is lost, and nothing is paid twice."""

import random

import pytest

from faults.arena import Arena
from faults.child import KILLED, Child
from faults.stage import LEASES_OVER_S
from figures import Report

GROUPS = (1, 10)
KILLS = 24
WORKERS = 2
ORDERS = 4
LIFE_S = 0.25
"""The longest life of a worker or application that is to be killed: most of it is the start."""
HELD = "select operation_id from coatcheck.outbox where leased_by = %s"
READY = "ready "


class Crowd:
    """Workers that are always so many, one of which is killed now and then; those it had in hand are noted as struck."""

    def __init__(self, arena: Arena, chance: random.Random) -> None:
        self._arena = arena
        self._chance = chance
        self._workers: list[Child] = []
        self.kills = 0

    def fill(self) -> None:
        while len(self._workers) < WORKERS:
            self._workers.append(self._arena.worker(until_idle=False, COATCHECK_CONCURRENCY__DISPATCH="4"))

    def one_dies(self) -> None:
        """At any instant of its life."""
        doomed = self._workers.pop(self._chance.randrange(WORKERS))
        self.dies(doomed)
        incarnation = doomed.talk.partition(READY)[2].partition("\n")[0]
        self._arena.struck |= {row["operation_id"] for row in self._arena.rows(HELD, incarnation)}

    def dies(self, doomed: Child) -> None:
        self._arena.passes(self._chance.uniform(0, LIFE_S))
        doomed.kill()
        self.kills += doomed.ended() == KILLED

    def ends(self) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            assert worker.ended() in (0, -15), worker.talk


@pytest.mark.timeout(300)
def test_kills_at_random_instants_lose_nothing_and_pay_nothing_twice(arena: Arena, group: int, figures: Report) -> None:
    chance = random.Random(group)
    crowd = Crowd(arena, chance)
    arena.work()
    # so many doubts in a row would pause the account
    arena.rows("update coatcheck.providers set doubt_limit = null returning name")
    unheard = []
    for number in range(KILLS):
        crowd.fill()
        orders = arena.orders(ORDERS)
        customer = arena.customer(orders)
        if number % 3:
            assert customer.ended() == 0, customer.talk
        else:
            crowd.dies(customer)
            unheard += orders
        crowd.one_dies()
        if number % 6 == 5:
            arena.database.move_time(LEASES_OVER_S)
    crowd.ends()
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert arena.struck
    # whoever heard nothing asks again, and finds or makes the one operation of its key
    again = arena.customer(unheard)
    assert again.ended() == 0, again.talk
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.answers == {"asked ok": KILLS * ORDERS}
    figures("kills", crowd.kills)
    figures("recovered", verdict.recovered)
