"""Looks of an account are counted by the claims that lease them, whoever claims, lookups among them; and no job is looked at too soon."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import RenderState
from coatcheck.queue.leases import Message, Release, Wanted
from coatcheck.seams import NO_FAULTS
from coatcheck.store import pauses
from coatcheck.store.budgets import Budget, LookReport, report_looks
from coatcheck.store.pauses import Pausable
from store.audited import BY
from store.budgeting import another, budget, stopped
from store.ground import ACCOUNT, Ground, look

CLAIMERS = 5
ROUNDS = 15
NAMES = ("genace", "second")


def claim(ground: Ground, room: int = 4) -> list[Message]:
    """As a worker claims that observes and reconciles for both names of the account."""
    wanted = [
        Wanted(action=Action.OBSERVE, provider=name, account=ACCOUNT, room=room, lease_s=10_000) for name in NAMES
    ]
    lookups = dict.fromkeys(NAMES, ACCOUNT)
    return ground.run(ground.leases.claim(wanted, doubts=room, doubt_lease_s=10_000, lookups=lookups))


@pytest.mark.parametrize("rate", [0.5, 40])
def test_racing_claims_lease_together_what_the_rate_allows_and_lookups_count_as_looks(
    database: postgres.Database, ground: Ground, rate: float
) -> None:
    """The clock stands still while all claim at once, so that every window is exact."""
    another(ground, "second", ACCOUNT)
    for number in range(120):
        operation_id = ground.enqueue(f"k{number}", provider=NAMES[number % 2])
        if number % 24:
            ground.accept(operation_id)
        else:
            doubt = ev.Doubted(dispatch_id=ground.mark(operation_id), cause="closed", looked_up=True)
            assert ground.happen(operation_id, doubt).applied
    budget(ground, Budget(looks_per_s=rate))
    clock, chance = stopped(database), random.Random(3)
    start, burst = Barrier(CLAIMERS), max(1, rate / 10)
    made: list[tuple[float, int]] = []
    done: Counter[str] = Counter()

    def compete(number: int) -> list[Message]:
        start.wait(timeout=30)
        return claim(workers[number])

    with ThreadPoolExecutor(CLAIMERS) as pool:
        workers = [ground.enter_context(Ground(database, f"claimer-{number}")) for number in range(CLAIMERS)]
        for _ in range(ROUNDS):
            clock.move(chance.choice([0, 0.3, 1, 2.5]) / rate)
            leased = [message for share in pool.map(compete, range(CLAIMERS)) for message in share]
            done.update(message.action for message in leased)
            made.append((clock.at, len(leased)))
            room = min(
                rate * (clock.at - made[first][0]) + burst - sum(count for _, count in made[first:])
                for first in range(len(made))
            )
            # nothing beyond any window, and nothing kept back: more than enough is due
            assert -1e-3 <= room < 1 + 1e-3
    assert set(done) == {Action.OBSERVE, Action.RECONCILE}


def test_who_asks_for_patience_with_looks_is_left_alone_without_any_rate(
    database: postgres.Database, ground: Ground
) -> None:
    operation_id = ground.enqueue("k")
    ground.accept(operation_id)
    database.move_time(600)
    clock = stopped(database)
    (leased,) = claim(ground)
    report = LookReport(
        operation_id=operation_id, account=ACCOUNT, leased_at=leased.leased_at, failure="status_503", shut_s=20
    )
    ground.run(report_looks(ground.line, [report]))
    assert ground.run(ground.leases.release([Release(message=leased, delay_s=0)])) == [True]
    clock.move(19.99)
    assert claim(ground) == []
    clock.move(0.02)
    assert len(claim(ground)) == 1


def test_a_job_is_not_looked_at_again_before_the_floor_whoever_asks_for_it(
    database: postgres.Database, ground: Ground
) -> None:
    """A person's `reobserve` makes it due at once, and it waits for the rest of the floor."""
    operation_id = ground.enqueue("k")
    ground.happen(operation_id, look(ground.accept(operation_id), RenderState.RENDERING))
    budget(ground, Budget(look_floor_s=30))
    clock = stopped(database)
    (leased,) = claim(ground)
    assert ground.run(ground.leases.release([Release(message=leased, delay_s=1)])) == [True]
    clock.move(2)
    assert claim(ground) == []
    assert ground.happen(operation_id, ev.Reobserve(**BY)).applied
    assert ground.sql("select visible_at <= coatcheck.lease_now() as is_due from coatcheck.outbox") == [
        {"is_due": True}
    ]
    clock.move(27.99)
    assert claim(ground) == []
    clock.move(0.02)
    assert [message.operation_id for message in claim(ground)] == [operation_id]


def test_no_hands_are_emptied_for_a_suspect_that_nobody_may_look_at(
    database: postgres.Database, ground: Ground
) -> None:
    """A pause may last for hours, and other accounts are worked for meanwhile."""
    another(ground, "second", "other")
    ground.accept(ground.enqueue("k1"))
    ground.sql("update coatcheck.outbox set leased_by = 'killed', leased_at = now(), lease_count = 2")
    for key in ("k2", "k3"):
        ground.enqueue(key, provider="second")
    database.move_time(600)

    def one_of_the_other() -> Message:
        looks = Wanted(action=Action.OBSERVE, provider="genace", account=ACCOUNT, room=4, lease_s=30)
        dispatches = Wanted(action=Action.DISPATCH, provider="second", account="other", room=1, lease_s=30)
        claimed = ground.leases.claim([looks, dispatches], doubts=0, doubt_lease_s=30, is_free=False)
        (message,) = ground.run(claimed)
        return message

    assert one_of_the_other().has_suspects
    ground.run(
        pauses.pause(
            ground.line, "genace", what=Pausable.OBSERVATION, reason="maintenance", actor="ada", faults=NO_FAULTS
        )
    )
    assert not one_of_the_other().has_suspects
