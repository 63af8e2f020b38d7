"""Allowances while everything happens at once: never more held than fits, no deadlock, and sums that are exact at every instant."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

import postgres
from coatcheck.core.operation import OperationId
from coatcheck.store.door import Status
from store.ground import Ground
from store.replies import replies
from store.spending import Spender, differences, limit, marks, purse

CONNECTIONS = 8
RESERVATIONS = 1_000
ROOM = 300
FIRST_LIMITS = 40
SESSIONS = 5
ROUNDS = 60
UNITS = (("t1", "credits"), ("t1", "tokens"), ("t2", "credits"))
NO_DEADLOCK = [{"deadlocks": 0}]
CONTRADICTING = pytest.mark.breaks("S2: one")
"""Random replies contradict each other about one POST, which no service does; such a dispatch may end displaced."""


def deadlocks(ground: Ground) -> list[dict[str, object]]:
    return ground.sql("select deadlocks from pg_stat_database where datname = current_database()")


def many(ground: Ground, count: int, **fields: object) -> list[OperationId]:
    """Operations in one transaction."""
    with ground.connection.transaction():
        return [ground.enqueue(f"k{number}", **{"estimate": "1", **fields}) for number in range(count)]


def at_once(count: int, work: Callable[[int], Counter[str]]) -> Counter[str]:
    """The same work on several connections, which begin together."""
    start = Barrier(count)

    def begin(number: int) -> Counter[str]:
        start.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(begin, range(count)), Counter[str]())


def test_a_thousand_racing_reservations_never_pass_the_limit(database: postgres.Database, ground: Ground) -> None:
    limit(ground, ROOM)
    operation_ids = many(ground, RESERVATIONS)

    def reserve(number: int) -> Counter[str]:
        with Ground(database, f"worker-{number}") as own:
            mine = operation_ids[number::CONNECTIONS]
            return Counter(saved.status for at in range(0, len(mine), 7) for saved in marks(own, mine[at : at + 7]))

    done = at_once(CONNECTIONS, reserve)
    assert done == {Status.APPLIED: ROOM, Status.ALLOWANCE: RESERVATIONS - ROOM}
    assert purse(ground) == (ROOM, 0)
    assert deadlocks(ground) == NO_DEADLOCK
    waiting = ground.sql("select count(*) from coatcheck.outbox where wait_reason = 'allowance'")
    assert waiting == [{"count": RESERVATIONS - ROOM}]


def test_what_is_released_while_others_reserve_is_never_held_twice(database: postgres.Database, ground: Ground) -> None:
    limit(ground, 40)
    operation_ids = many(ground, 400)
    ended = Event()

    def watch() -> object:
        highest = 0
        with Ground(database, "watcher") as own:
            while not ended.is_set():
                (row,) = own.sql("select count(*) from coatcheck.dispatches where settled_at is null")
                highest = max(highest, row["count"])
        return highest

    def spend(number: int) -> Counter[str]:
        done = Counter[str]()
        with Ground(database, f"worker-{number}") as own:
            for at in range(number * 5, len(operation_ids), CONNECTIONS * 5):
                batch = operation_ids[at : at + 5]
                saved = dict(zip(batch, marks(own, batch), strict=True))
                done.update(each.status for each in saved.values())
                for operation_id in [each for each in batch if saved[each].applied][::2]:
                    dispatch_id = own.operation(operation_id).dispatch_id
                    assert dispatch_id is not None
                    assert own.happen(operation_id, replies(dispatch_id)["rejected"]).applied
        return done

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        done = at_once(CONNECTIONS, spend)
        ended.set()
    assert 0 < int(str(watching.result(timeout=20))) <= 40
    assert done[Status.APPLIED] > 40
    held = ground.sql("select count(*) from coatcheck.dispatches where settled_at is null")
    assert purse(ground) == (held[0]["count"], 0)
    assert deadlocks(ground) == NO_DEADLOCK


@CONTRADICTING
@pytest.mark.timeout(240)
def test_an_allowance_that_begins_amid_marks_and_settlements_is_exact_at_once(
    database: postgres.Database, ground: Ground
) -> None:
    operation_ids = many(ground, 200)
    ended = Event()

    def spend(number: int) -> Counter[str]:
        with Ground(database, f"worker-{number}") as own:
            spender = Spender(own, number, operation_ids[number::4])
            while not ended.is_set():
                spender.round()
        return spender.done

    with ThreadPoolExecutor(4) as pool:
        spending = [pool.submit(spend, number) for number in range(4)]
        found = []
        try:
            for _ in range(FIRST_LIMITS):
                ground.sql("delete from coatcheck.allowances")
                limit(ground, None)
                found += differences(ground)
        finally:
            ended.set()
        done = sum((each.result(timeout=60) for each in spending), Counter[str]())
    assert found == []
    assert done[Status.APPLIED] > 200
    assert deadlocks(ground) == NO_DEADLOCK


@CONTRADICTING
@pytest.mark.timeout(240)
def test_marks_ends_looks_decisions_and_limits_at_once_neither_deadlock_nor_lose_an_amount(
    database: postgres.Database, ground: Ground
) -> None:
    with ground.connection.transaction():
        operation_ids = [
            ground.enqueue(f"{unit}{number}", tenant_id=tenant, unit=unit, estimate="1.5")
            for number in range(15)
            for tenant, unit in UNITS
        ]

    def spend(number: int) -> Counter[str]:
        with Ground(database, f"worker-{number}") as own:
            spender = Spender(own, number, operation_ids)
            for _ in range(ROUNDS):
                spender.round(15)
                if number == 0:
                    tenant, unit = spender.chance.choice(UNITS)
                    own.sql("delete from coatcheck.allowances where unit = 'tokens'")
                    limit(own, spender.chance.choice([None, 5, 100]), tenant=tenant, unit=unit)
                    assert differences(own) == []
        return spender.done

    done = at_once(SESSIONS, spend)
    assert min(done[each] for each in (Status.APPLIED, Status.STALE, Status.ALLOWANCE, Status.EVIDENCE)) > 0, done
    assert differences(ground) == []
    assert deadlocks(ground) == NO_DEADLOCK
