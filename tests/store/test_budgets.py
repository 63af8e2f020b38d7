"""What all workers together may ask of an account: what is in flight and how many dispatches a second, exact to the request."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import DispatchId, OperationId, Phase, RemoteJobId, RenderState
from coatcheck.core.steps import ConcludeStep
from coatcheck.store.budgets import Budget
from coatcheck.store.door import ConcludeSave, Saved, Status
from store.audited import BY, LONG_AGO, audited
from store.budgeting import MISCOUNTED, account, another, budget, flights, marked, stopped
from store.ground import ACCOUNT, Ground, look
from store.replies import accepted, replies
from store.spending import Spender

CONNECTIONS = 6
LIMIT = 7
TRIES = 1_000
"""Marks that one connection tries before it gives up; a hundred do."""
OTHER = "other"
CONTRADICTING = pytest.mark.breaks("S2: one")
"""Random replies contradict each other about one POST, which no service does; such a dispatch may end displaced."""


def statuses(saved: Sequence[Saved]) -> list[Status]:
    return [each.status for each in saved]


def end(ground: Ground, operation_id: OperationId, way: int) -> None:
    """Take a dispatching operation out of flight, in one of the ways that there are."""
    dispatch_id = ground.operation(operation_id).dispatch_id
    assert dispatch_id is not None
    reply = replies(dispatch_id)
    match way % 4:
        case 0:
            assert ground.happen(operation_id, reply["rejected"]).applied
        case 1:
            assert ground.happen(operation_id, ev.LeaseEnded()).applied
            assert ground.happen(operation_id, ev.WriteOff(**BY)).applied
        case 2:
            job = RemoteJobId(f"job-{operation_id}")
            assert ground.happen(operation_id, accepted(dispatch_id, job)).applied
            assert ground.happen(operation_id, look(job, RenderState.SUCCEEDED, outputs=1)).applied
        case _:
            assert ground.happen(operation_id, reply["uncertain"]).applied
            assert ground.happen(operation_id, ev.ProveAbsent(**BY, quiescent_at=LONG_AGO)).applied
            assert ground.happen(operation_id, ev.Cancel(**BY)).applied


def test_what_is_in_flight_never_passes_its_limit_while_connections_race(
    database: postgres.Database, ground: Ground
) -> None:
    """The server refuses a count above the limit, and the count is compared with what is in flight all the while.

    A check constraint would refuse counts that nobody writes: it is asked of the row as it was before a wait for its lock, too.
    """
    budget(ground, Budget(max_in_flight=LIMIT))
    ground.sql(
        "create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'above the limit'; end $$"
    )
    ground.sql(
        "create trigger never after update on coatcheck.accounts for each row when (new.in_flight_count > new.max_in_flight)"
        " execute function public.refuse()"
    )
    operation_ids = ground.enqueue_many(25 * CONNECTIONS)
    start, ended = Barrier(CONNECTIONS), Event()

    def work(number: int) -> set[Status]:
        chance, mine, seen = random.Random(number), operation_ids[number::CONNECTIONS], set()
        with Ground(database, f"worker-{number}") as own:
            start.wait(timeout=30)
            for _ in range(TRIES):
                batch = mine[: chance.randrange(1, 5)]
                saved = dict(zip(batch, marked(own, batch), strict=True))
                seen |= {each.status for each in saved.values()}
                gone = [each for each in batch if saved[each].applied]
                for operation_id in gone:
                    end(own, operation_id, chance.randrange(4))
                mine = [each for each in mine if each not in gone]
                if not mine:
                    return seen
        raise AssertionError("what is over leaves no room for what waits")

    def watch() -> list[int]:
        with Ground(database, "watcher") as own:
            counts = []
            while not ended.is_set():
                assert own.sql(MISCOUNTED) == []
                counts.append(account(own)["in_flight_count"])
            return counts

    with ThreadPoolExecutor(CONNECTIONS + 1) as pool:
        watching = pool.submit(watch)
        try:
            seen = set().union(*pool.map(work, range(CONNECTIONS)))
        finally:
            ended.set()
    assert (seen, max(watching.result(timeout=30))) == ({Status.APPLIED, Status.CAP}, LIMIT)
    assert flights(ground) == 0
    assert ground.sql("select deadlocks from pg_stat_database where datname = current_database()") == [{"deadlocks": 0}]


@CONTRADICTING
def test_the_count_is_what_is_in_flight_after_everything_that_may_happen(ground: Ground) -> None:
    """Random lives, also under a limit that stops some of them, and their jobs lost and found again."""
    spender = Spender(ground, 4, ground.enqueue_many(12))
    for number in range(72):
        if number % 24 == 0:
            budget(ground, Budget(max_in_flight=None))
            spender.round()
            budget(ground, Budget(max_in_flight=1))
        # not counted anew by this
        ground.sql("update coatcheck.accounts set max_in_flight = %s", number % 12)
        spender.round()
        known = ground.sql(
            "select operation_id from coatcheck.operations where phase = 'accepted' and final_at is null"
        )
        for row in known[1:2]:
            ground.happen(row["operation_id"], ev.NotFound(grace_s=0))
        assert ground.sql(MISCOUNTED) == []
    assert spender.done[Status.APPLIED] > 50
    assert spender.done[Status.CAP] > 10


def test_what_is_in_doubt_keeps_its_place_until_it_is_decided_and_what_waits_gets_it_then(
    database: postgres.Database, ground: Ground
) -> None:
    budget(ground, Budget(max_in_flight=1))
    first, second = ground.enqueue_many(2)
    assert statuses(marked(ground, [first, second])) == [Status.APPLIED, Status.CAP]
    waiting = ground.one("outbox", second, "wait_reason", "wait_count", "leased_by")
    assert waiting == {"wait_reason": "cap", "wait_count": 1, "leased_by": None}
    for event in (ev.LeaseEnded(), ev.Note(**BY)):
        assert ground.happen(first, event).applied
        assert flights(ground) == 1
        database.move_time(60)
        assert ground.claim(Action.DISPATCH) == []
        assert statuses(marked(ground, [second])) == [Status.CAP]
    assert ground.happen(first, ev.Adopt(**BY, remote_job_id=RemoteJobId("job"))).applied
    assert flights(ground) == 1
    assert ground.happen(first, ev.NotFound(grace_s=0)).applied
    assert flights(ground) == 0
    database.move_time(60)
    assert [each.operation_id for each in ground.claim(Action.DISPATCH)] == [second]
    assert statuses(marked(ground, [second])) == [Status.APPLIED]


def test_a_lowered_limit_lets_nothing_new_in_until_enough_are_over_and_nought_nothing_at_all(ground: Ground) -> None:
    *flying, last = ground.enqueue_many(6)
    assert set(statuses(marked(ground, flying))) == {Status.APPLIED}
    budget(ground, Budget(max_in_flight=2))
    for number, operation_id in enumerate(flying[:4]):
        assert (flights(ground), statuses(marked(ground, [last]))) == (5 - number, [Status.CAP])
        end(ground, operation_id, number)
    assert (flights(ground), statuses(marked(ground, [last]))) == (1, [Status.APPLIED])
    budget(ground, Budget(max_in_flight=0))
    more = ground.enqueue("more")
    for operation_id in (flying[4], last):
        end(ground, operation_id, 0)
    assert (flights(ground), ground.claim(Action.DISPATCH)) == (0, [])
    assert statuses(marked(ground, [more])) == [Status.CAP]
    budget(ground, Budget(max_in_flight=None))
    assert [each.operation_id for each in ground.claim(Action.DISPATCH)] == [more]
    assert statuses(marked(ground, [more])) == [Status.APPLIED]


def test_the_providers_of_an_account_share_its_budget_and_another_account_has_its_own(ground: Ground) -> None:
    another(ground, "second", ACCOUNT)
    another(ground, "third", OTHER)
    budget(ground, Budget(max_in_flight=2), "second")
    budget(ground, Budget(max_in_flight=1), "third")
    mixed = [ground.enqueue(f"{name}{number}", provider=name) for number in (1, 2) for name in ("genace", "second")]
    others = [ground.enqueue(f"third{number}", provider="third") for number in (1, 2)]
    assert statuses(marked(ground, mixed)) == [Status.APPLIED, Status.APPLIED, Status.CAP, Status.CAP]
    assert statuses(marked(ground, others, OTHER)) == [Status.APPLIED, Status.CAP]
    assert (flights(ground), flights(ground, OTHER)) == (2, 1)


@CONTRADICTING
def test_a_late_reply_moves_no_other_account_than_the_one_that_the_operation_has(ground: Ground) -> None:
    """A failover lost a mark; the provider's account was changed and the operation dispatched anew before the reply came."""
    another(ground, "second", OTHER)
    budget(ground, Budget(max_in_flight=5), "second")
    operation_id = ground.enqueue("k")
    lost = DispatchId(ground.seams.ids.uuid7())
    assert statuses(marked(ground, [operation_id], OTHER)) == [Status.APPLIED]
    for reply in (accepted(lost, RemoteJobId("orphan")), ev.Doubted(dispatch_id=lost, cause="no_reply")):
        step = ground.step(operation_id, reply)
        assert isinstance(step, ConcludeStep)
        save = ground.as_save(step)
        assert isinstance(save, ConcludeSave)
        assert statuses(ground.write([replace(save, account=ACCOUNT)])) == [Status.EVIDENCE]
    assert (flights(ground), flights(ground, OTHER)) == (0, 1)


def test_a_count_that_somebody_falsified_is_found_by_the_audit_and_mended_by_its_remedy(ground: Ground) -> None:
    marked(ground, ground.enqueue_many(2))
    budget(ground, Budget(max_in_flight=3))
    assert audited(ground.database) == []
    ground.sql("update coatcheck.accounts set in_flight_count = 5")
    (found,) = audited(ground.database)
    assert (found.check, found.kind) == ("S11", "flights_differ")
    assert found.detail == "account genace counts 5 in flight, and there are 2"
    budget(ground, Budget(max_in_flight=3))
    assert (audited(ground.database), flights(ground)) == ([], 2)


# -- dispatches per second ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.5, 47])
def test_marks_in_any_window_are_what_the_rate_allows_and_a_tenth_of_a_second_at_once(
    database: postgres.Database, ground: Ground, rate: float
) -> None:
    """Moves and batches at random, with the clock standing still between them, so that every window is exact."""
    budget(ground, Budget(dispatches_per_s=rate))
    clock, chance, made = stopped(database), random.Random(7), list[tuple[float, int]]()
    burst = max(1, rate / 10)

    def free(first: int) -> float:
        """How many more the window from a batch until now has room for."""
        return rate * (clock.at - made[first][0]) + burst - sum(count for _, count in made[first:])

    for number in range(16):
        clock.move(chance.choice([0, 0.1, 0.7, 1, 3]) * chance.choice([1, 3]) / rate)
        batch = [ground.enqueue(f"{number}-{each}") for each in range(chance.randrange(1, 6))]
        saved = statuses(marked(ground, batch))
        assert saved == sorted(saved)
        assert set(saved) <= {Status.APPLIED, Status.RATE}
        made.append((clock.at, saved.count(Status.APPLIED)))
        fullest = min(map(free, range(len(made))))
        assert fullest >= -1e-3
        # nothing is refused without need
        assert Status.APPLIED in saved[-1:] or fullest < 1 + 1e-3


def test_what_the_rate_refuses_waits_until_the_very_instant_that_it_says(
    database: postgres.Database, ground: Ground
) -> None:
    budget(ground, Budget(dispatches_per_s=40))
    clock = stopped(database)
    operation_ids = ground.enqueue_many(9)
    assert statuses(marked(ground, operation_ids)) == [Status.APPLIED] * 4 + [Status.RATE] * 5
    (now,) = ground.sql("select coatcheck.lease_now() as at")
    for number, operation_id in enumerate(operation_ids[4:], start=1):
        lane = ground.one("outbox", operation_id)
        assert lane["wait_reason"] == "rate"
        assert (lane["visible_at"] - now["at"]).total_seconds() == pytest.approx(number / 40, abs=1e-5)
    for number in range(1, 6):
        clock.move(number / 40 - 0.001 - clock.at)
        assert ground.claim(Action.DISPATCH) == []
        assert set(statuses(marked(ground, operation_ids[3 + number :]))) == {Status.RATE}
        clock.move(number / 40 + 0.0001 - clock.at)
        (message,) = ground.claim(Action.DISPATCH, 1)
        assert statuses(marked(ground, [message.operation_id])) == [Status.APPLIED]


@pytest.mark.parametrize(("before", "after", "wait_s"), [(0.01, 10, 0.1), (10, 0.5, 2.0), (0.01, None, 0.0)])
def test_another_rate_holds_at_once_for_what_waits_and_for_what_was_used_up(
    database: postgres.Database, ground: Ground, before: float, after: float | None, wait_s: float
) -> None:
    budget(ground, Budget(dispatches_per_s=before))
    clock = stopped(database)
    first, second = ground.enqueue_many(2)
    assert statuses(marked(ground, [first, second])) == [Status.APPLIED, Status.RATE]
    budget(ground, Budget(dispatches_per_s=after))
    if wait_s:
        assert statuses(marked(ground, [second])) == [Status.RATE]
        clock.move(wait_s - 0.001)
        assert ground.claim(Action.DISPATCH) == []
        clock.move(0.0011)
    assert [each.operation_id for each in ground.claim(Action.DISPATCH)] == [second]
    assert statuses(marked(ground, [second])) == [Status.APPLIED]


def busy(ground: Ground, operation_id: OperationId, shut_s: float | None) -> ConcludeSave:
    """A dispatch that the service threw back, asking everyone of the account to stay away."""
    dispatch_id = ground.operation(operation_id).dispatch_id
    assert dispatch_id is not None
    save = ground.as_save(ground.step(operation_id, ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None)))
    assert isinstance(save, ConcludeSave)
    asked = replace(save, shut_s=shut_s)
    assert statuses(ground.write([asked])) == [Status.APPLIED]
    return asked


def test_who_is_asked_to_stay_away_keeps_every_worker_of_the_account_away_and_nobody_else(
    database: postgres.Database, ground: Ground
) -> None:
    """Without any budget; the longest wait holds, and a save that is written again prolongs nothing."""
    ground.sql("update coatcheck.accounts set max_in_flight = null")
    another(ground, "third", OTHER)
    clock = stopped(database)
    first, second, third, *rest = ground.enqueue_many(5)
    assert statuses(marked(ground, [first, second, third])) == [Status.APPLIED] * 3
    asked = busy(ground, first, 30)
    clock.move(5)
    busy(ground, second, 3)
    ground.write([asked])
    busy(ground, third, None)
    with Ground(database, "worker-2") as other:
        assert other.claim(Action.DISPATCH) == []
        assert statuses(marked(other, rest)) == [Status.RATE] * 2
        (now,) = other.sql("select coatcheck.lease_now() as at")
        waits = [(other.one("outbox", each)["visible_at"] - now["at"]).total_seconds() for each in rest]
        assert waits == [25, 25]
        free = ground.enqueue("free", provider="third")
        assert statuses(marked(other, [free], OTHER)) == [Status.APPLIED]
        clock.move(24.999)
        assert statuses(marked(other, rest[:1])) == [Status.RATE]
        clock.move(0.002)
        assert statuses(marked(other, rest)) == [Status.APPLIED] * 2


def test_a_budget_of_an_account_that_has_no_row_yet_is_set_and_what_is_not_given_stays(ground: Ground) -> None:
    """As a worker of an older version leaves it, which knows providers only."""
    operation_id = ground.enqueue("k")
    marked(ground, [operation_id])
    ground.sql("delete from coatcheck.accounts")
    names = ("max_in_flight", "dispatches_per_s", "looks_per_s", "look_floor_s")
    budget(ground, Budget(dispatches_per_s=2.5))
    assert [account(ground)[name] for name in names] == [None, 2.5, None, None]
    budget(ground, Budget(max_in_flight=3, look_floor_s=0))
    assert [account(ground)[name] for name in names] == [3, 2.5, None, 0]
    assert flights(ground) == 1
    budget(ground, Budget(dispatches_per_s=None, looks_per_s=1))
    assert [account(ground)[name] for name in names] == [3, None, 1, 0]
    assert (flights(ground), ground.operation(operation_id).phase) == (1, Phase.DISPATCHING)


@pytest.mark.parametrize("closed", [Budget(max_in_flight=0), Budget(max_in_flight=1)])
def test_a_deadline_ends_also_while_its_account_has_no_leave(
    database: postgres.Database, ground: Ground, closed: Budget
) -> None:
    first, _, third = (
        ground.enqueue("now"),
        ground.enqueue("whenever"),
        ground.enqueue("soon", dispatch_by_at=in_an_hour(ground)),
    )
    budget(ground, closed)
    marked(ground, [first])
    assert ground.claim(Action.DISPATCH) == []
    database.move_time(3601)
    assert {message.operation_id for message in ground.claim(Action.DISPATCH)} == {third}
    assert ground.happen(third, ev.DeadlinePassed()).applied
    assert ground.operation(third).phase is Phase.CANCELLED


def test_a_deadline_that_a_person_cleared_is_none_of_the_message_either(
    database: postgres.Database, ground: Ground
) -> None:
    operation_id = ground.enqueue("k", dispatch_by_at=in_an_hour(ground))
    ground.mark(operation_id)
    assert ground.happen(operation_id, ev.LeaseEnded()).applied
    assert ground.happen(operation_id, ev.ProveAbsent(**BY, quiescent_at=LONG_AGO)).applied
    budget(ground, Budget(max_in_flight=0))
    database.move_time(3601)
    assert ground.claim(Action.DISPATCH) == []


def in_an_hour(ground: Ground) -> str:
    (row,) = ground.sql("select to_char(now() + interval '1 h', 'YYYY-MM-DD\"T\"HH24:MI:SSOF') || ':00' as at")
    return str(row["at"])
