"""Budgets while everything happens at once and time goes on: a limit that begins amid writers is exact at once, and no second passes its rate."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

import postgres
from coatcheck.store.budgets import Budget
from coatcheck.store.door import Status
from store.budgeting import MISCOUNTED, account, budget, marked
from store.ground import Ground
from store.spending import Spender

CONNECTIONS = 4
LIMITS = 60
RATE = 60
OPERATIONS = 600
BETWEEN_S = 0.05
"""At most so long passes between the instants that one mark reads of the clock."""
CONTRADICTING = pytest.mark.breaks("S2: one")
"""Random replies contradict each other about one POST, which no service does; such a dispatch may end displaced."""


@CONTRADICTING
@pytest.mark.timeout(240)
def test_a_limit_that_begins_amid_marks_ends_looks_and_decisions_is_exact_at_once(
    database: postgres.Database, ground: Ground
) -> None:
    operation_ids = ground.enqueue_many(50 * CONNECTIONS)
    ended = Event()

    def live(number: int) -> Counter[str]:
        with Ground(database, f"worker-{number}") as own:
            spender = Spender(own, number, operation_ids[number::CONNECTIONS])
            while not ended.is_set():
                spender.round()
        return spender.done

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        living = [pool.submit(live, number) for number in range(CONNECTIONS)]
        found, counts = [], set()
        try:
            for number in range(LIMITS):
                budget(ground, Budget(max_in_flight=None))
                budget(ground, Budget(max_in_flight=1_000 - number))
                found += ground.sql(MISCOUNTED)
                counts.add(account(ground)["in_flight_count"])
        finally:
            ended.set()
        done = sum((each.result(timeout=60) for each in living), Counter[str]())
    assert found == []
    assert len(counts) > 5
    assert done[Status.APPLIED] > 200
    assert ground.sql("select deadlocks from pg_stat_database where datname = current_database()") == [{"deadlocks": 0}]


@pytest.mark.timeout(120)
def test_racing_marks_pass_their_rate_in_no_window_of_real_time(database: postgres.Database, ground: Ground) -> None:
    budget(ground, Budget(dispatches_per_s=RATE))
    operation_ids = ground.enqueue_many(OPERATIONS)
    start, ended = Barrier(CONNECTIONS), Event()

    def race(number: int) -> Counter[str]:
        seen, mine = Counter[str](), operation_ids[number::CONNECTIONS]
        with Ground(database, f"worker-{number}") as own:
            start.wait(timeout=30)
            while mine and not ended.is_set():
                batch = mine[:3]
                saved = dict(zip(batch, marked(own, batch), strict=True))
                seen.update(each.status for each in saved.values())
                mine = [each for each in mine if each not in batch or not saved[each].applied]
                if len(mine) < OPERATIONS // CONNECTIONS // 2:
                    ended.set()
        return seen

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        seen = sum(pool.map(race, range(CONNECTIONS)), Counter[str]())
    assert set(seen) == {Status.APPLIED, Status.RATE}
    instants = [
        row["at"].timestamp() for row in ground.sql("select begun_at as at from coatcheck.dispatches order by begun_at")
    ]
    beyond = [
        (last - first + 1, instants[last] - instants[first])
        for first in range(len(instants))
        for last in range(first, len(instants))
        if last - first + 1 > RATE * (instants[last] - instants[first] + BETWEEN_S) + max(1, RATE / 10)
    ]
    assert beyond == []
    # and the rate is used: somebody always wanted more
    assert len(instants) >= 0.8 * RATE * (instants[-1] - instants[0])
