"""When one process claims, and how much: waiting, resting, and what is heard of meanwhile."""

import asyncio
from dataclasses import replace

import pytest

import postgres
from coatcheck.core.actions import Action
from coatcheck.core.operation import OperationId
from coatcheck.queue.leases import Leases, Message
from coatcheck.seams import Clock, Seams
from coatcheck.store.budgets import Budget
from coatcheck.workers import lessor as lessor_module
from coatcheck.workers.lessor import AT_ONCE, REST_S, Capacity, Lessor
from coatcheck.workers.pace import Pace
from store.budgeting import budget
from store.ground import ACCOUNT, Ground


class MovedClock(Clock):
    """Boot time as the test says."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def boottime(self) -> float:
        return self.at


def test_who_empties_its_hands_for_a_suspect_does_not_ask_again_and_again_once_a_budget_opened(
    database: postgres.Database,
) -> None:
    with Ground(database) as ground:
        first, suspect, second = [ground.enqueue(key) for key in ("k1", "k2", "k3")]
        budget(ground, Budget(looks_per_s=1))
        clock = MovedClock()
        capacities = {Action.OBSERVE: Capacity(places=100, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=clock))

        def claimed() -> list[OperationId]:
            clock.at += 5
            return [work.message.operation_id for work in ground.run(lessor.claim())]

        ground.accept(first)
        database.move_time(600)
        assert claimed() == [first]
        ground.accept(suspect)
        ground.sql(
            "update coatcheck.outbox set leased_by = 'killed', leased_at = now(), lease_count = 2 where operation_id = %s",
            suspect,
        )
        ground.accept(second)
        database.move_time(600)
        assert claimed() == [second], "the suspect is for who has nothing in hand"
        assert claimed() == []
        with pytest.raises(TimeoutError):
            ground.run(asyncio.wait_for(lessor.wait(), 0.1))


def test_what_is_heard_of_during_a_rest_is_claimed_without_the_crowd_that_the_rest_is_for(
    database: postgres.Database,
) -> None:
    with Ground(database) as ground:
        clock = MovedClock()
        capacities = {Action.DISPATCH: Capacity(places=16, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=clock))
        held: list[Message] = []

        def claimed() -> list[str]:
            found = [work.message for work in ground.run(lessor.claim())]
            held.extend(found)
            return [message.tenant_id for message in found]

        for number in range(20):
            ground.enqueue(f"k{number}", tenant_id="flood")
        ground.enqueue("b", tenant_id="ben")
        assert sorted(claimed()) == ["ben", *["flood"] * 13], "an eighth is kept"
        for message in [message for message in held if message.tenant_id == "flood"][:6]:
            held.remove(message)
            lessor.done(message)
        for number in range(2):
            ground.enqueue(f"a{number}", tenant_id="ada")
        lessor.hear()
        assert claimed() == ["ada"], "the first of who has nothing in hand, during the rest"
        lessor.hear()
        assert claimed() == [], "nobody else is new, and the flood's rest is not over"
        ground.enqueue("c", tenant_id="cyd")
        lessor.hear()
        assert claimed() == ["cyd"]
        for message in held:
            lessor.done(message)
        clock.at += REST_S
        assert sorted(claimed()) == ["ada", *["flood"] * 7]


def test_one_tenant_alone_is_claimed_as_soon_as_it_is_heard_of(database: postgres.Database) -> None:
    with Ground(database) as ground:
        clock = MovedClock()
        capacities = {Action.DISPATCH: Capacity(places=16, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=clock))
        ground.enqueue_many(2)
        assert len(ground.run(lessor.claim())) == 2
        ground.enqueue("more")
        lessor.hear()
        assert len(ground.run(lessor.claim())) == 1, "a rest is no wall where nobody else is kept waiting"


@pytest.mark.parametrize("has_company", [False, True])
def test_a_backlog_is_claimed_in_portions_that_follow_at_once_where_nobody_else_waits(
    database: postgres.Database, monkeypatch: pytest.MonkeyPatch, *, has_company: bool
) -> None:
    """What is claimed all at once keeps first the processor busy and then the database."""
    monkeypatch.setattr(lessor_module, "REST_S", 1_000.0)
    with Ground(database) as ground:
        capacities = {Action.DISPATCH: Capacity(places=3 * AT_ONCE, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=MovedClock()))
        ground.enqueue_many(2 * AT_ONCE)
        if has_company:
            ground.enqueue("b", tenant_id="ben")
        begun = ground.run(lessor.claim())
        assert len(begun) == AT_ONCE - capacities[Action.DISPATCH].reserve
        if has_company:
            with pytest.raises(TimeoutError):
                ground.run(asyncio.wait_for(lessor.wait(), 0.1))
        else:
            ground.run(asyncio.wait_for(lessor.wait(), 10))
            assert len(ground.run(lessor.claim())) == len(begun)


def test_what_takes_the_last_places_is_followed_by_a_rest(
    database: postgres.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessor_module, "REST_S", 1_000.0)
    with Ground(database) as ground:
        capacities = {Action.DISPATCH: Capacity(places=AT_ONCE * 3 // 2, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=MovedClock()))
        ground.enqueue_many(2 * AT_ONCE)
        begun = ground.run(lessor.claim()) + ground.run(lessor.claim())
        assert len(begun) == AT_ONCE * 3 // 2 - capacities[Action.DISPATCH].reserve
        for work in begun:
            lessor.done(work.message)
        with pytest.raises(TimeoutError):
            ground.run(asyncio.wait_for(lessor.wait(), 0.3))


def test_a_portion_does_not_count_as_little(database: postgres.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one that was slow would be followed by a claim of hardly anything."""
    learned: list[float] = []

    def learn(pace: Pace, now: float, *, took_s: float, rows: int, begun: float) -> None:
        learned.append(begun)

    monkeypatch.setattr(Pace, "learn", learn)
    with Ground(database) as ground:
        capacities = {Action.DISPATCH: Capacity(places=AT_ONCE * 3 // 2, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=MovedClock()))
        ground.enqueue_many(2 * AT_ONCE)
        begun = [len(ground.run(lessor.claim())) for _ in range(2)]
        assert learned == [1.0, begun[1] / capacities[Action.DISPATCH].places]


def test_what_takes_turns_with_others_is_not_divided_further(database: postgres.Database) -> None:
    """In company each claim is followed by a rest, whatever it took, so a portion would only make the worker slower."""
    with Ground(database) as ground:
        clock = MovedClock()
        capacities = {Action.DISPATCH: Capacity(places=5 * AT_ONCE, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=clock))
        ground.enqueue("b", tenant_id="ben")
        ground.enqueue_many(3 * AT_ONCE)
        first = len(ground.run(lessor.claim()))
        assert first < AT_ONCE, "nobody is known to be there yet"
        clock.at += 2 * REST_S
        assert len(ground.run(lessor.claim())) == 3 * AT_ONCE + 1 - first


def test_a_portion_is_as_large_whoever_else_is_configured(database: postgres.Database) -> None:
    with Ground(database) as ground:
        accounts = {ACCOUNT: ACCOUNT, "idle": "idle", "idler": "idler"}
        capacities = {Action.DISPATCH: Capacity(places=5 * AT_ONCE, lease_s=45, accounts=accounts)}
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=MovedClock()))
        ground.enqueue_many(2 * AT_ONCE)
        assert len(ground.run(lessor.claim())) == AT_ONCE - capacities[Action.DISPATCH].reserve // len(accounts)


@pytest.mark.parametrize("places", [AT_ONCE // 2, 3 * AT_ONCE])
def test_a_kind_that_is_full_keeps_no_other_from_its_next_portion(
    database: postgres.Database, monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    """POSTs of a slow service may fill their places for long; looks, which have room for portions, do not wait for them."""
    monkeypatch.setattr(lessor_module, "ROOM_S", 1_000.0)
    with Ground(database) as ground:
        for operation_id in ground.enqueue_many(places):
            ground.accept(operation_id)
        database.move_time(600)
        for number in range(10):
            ground.enqueue(f"d{number}")
        accounts = {ACCOUNT: ACCOUNT}
        capacities = {
            Action.DISPATCH: Capacity(places=1, lease_s=45, accounts=accounts),
            Action.OBSERVE: Capacity(places=places, lease_s=45, accounts=accounts),
        }
        lessor = Lessor(Leases(ground.line, "w"), ground.line, capacities, replace(Seams.real(), clock=MovedClock()))
        ground.run(lessor.claim())
        lessor.wake()
        if places > AT_ONCE:
            ground.run(asyncio.wait_for(lessor.wait(), 10))
        else:
            with pytest.raises(TimeoutError):
                ground.run(asyncio.wait_for(lessor.wait(), 0.3))
