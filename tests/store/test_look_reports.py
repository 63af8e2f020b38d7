"""What looks say of their account: ten failures in a row pause its looks, one look at a time tries the pause, and only a person ends a person's."""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest

from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import OperationId
from coatcheck.queue.leases import Message, Release, Wanted
from coatcheck.seams import NO_FAULTS
from coatcheck.store import pauses
from coatcheck.store.budgets import FAILED_LOOKS, FIRST_PROBE_S, LAST_PROBE_S, LookReport, report_looks
from coatcheck.store.pauses import Pausable
from store.ground import ACCOUNT, Ground

LEASE_S = 90.0


@pytest.fixture(autouse=True)
def account(ground: Ground) -> None:
    ground.sql("insert into coatcheck.accounts (account) values ('genace'), ('other') on conflict do nothing")


def row(ground: Ground, account: str = ACCOUNT) -> dict[str, Any]:
    (found,) = ground.sql("select * from coatcheck.accounts where account = %s", account)
    return found


def now(ground: Ground) -> datetime:
    (found,) = ground.sql("select coatcheck.lease_now() as now")
    at: datetime = found["now"]
    return at


def is_paused(ground: Ground) -> bool:
    return row(ground)["observation_paused_at"] is not None


def told(
    ground: Ground, *endings: str | None, leased_at: datetime | None = None, shut_s: float | None = None
) -> list[LookReport]:
    """Reports of looks that ended so, None for an answer; as fresh as they can be unless `leased_at` says otherwise."""
    return [
        LookReport(
            operation_id=OperationId(ground.seams.ids.uuid7()),
            account=ACCOUNT,
            leased_at=leased_at or now(ground),
            failure=failure,
            shut_s=shut_s,
        )
        for failure in endings
    ]


def report(
    ground: Ground, *endings: str | None, leased_at: datetime | None = None, shut_s: float | None = None
) -> None:
    ground.run(report_looks(ground.line, told(ground, *endings, leased_at=leased_at, shut_s=shut_s)))


def pause(ground: Ground) -> None:
    """As looks do it that fail."""
    report(ground, *["status_503"] * FAILED_LOOKS)
    assert is_paused(ground)


def rendering(ground: Ground, count: int) -> list[OperationId]:
    """Operations whose looks are due."""
    made = ground.enqueue_many(count)
    for operation_id in made:
        ground.accept(operation_id)
    ground.database.move_time(60)
    return made


def due_in_s(ground: Ground) -> float:
    """How long until the pause is tried."""
    seconds: float = (row(ground)["observation_probe_at"] - now(ground)).total_seconds()
    return seconds


def probe(ground: Ground) -> Message:
    """The one look that a pause is tried with, once that is due."""
    ground.database.move_time(due_in_s(ground) + 0.01)
    (message,) = ground.claim(Action.OBSERVE, lease_s=LEASE_S)
    return message


def ended(ground: Ground, message: Message, failure: str | None) -> None:
    """How that look ended, and its message goes back."""
    report(ground, failure, leased_at=message.leased_at)
    assert ground.run(ground.leases.release([Release(message=message, delay_s=0)])) == [True]


NO: None = None
FAIL = "timeout"


@pytest.mark.parametrize(
    ("batches", "paused"),
    [
        ([[FAIL]] * 9, False),
        ([[FAIL]] * 10, True),
        ([[FAIL] * 10], True),
        ([[FAIL] * 9, [NO], [FAIL] * 9], False),
        ([[FAIL] * 9, [NO, FAIL]], False),
        ([[FAIL] * 9, [FAIL, NO]], False),
        ([[FAIL] * 5 + [NO] + [FAIL] * 5], False),
        ([[NO] + [FAIL] * 10], True),
        ([[FAIL] * 5 + [NO] + [FAIL] * 5, [FAIL] * 5], True),
        ([[FAIL] * 30 + [NO]], False),
    ],
)
def test_ten_failures_in_a_row_pause_the_looks_and_an_answer_begins_the_count_anew(
    ground: Ground, batches: Sequence[Sequence[str | None]], paused: bool
) -> None:
    for batch in batches:
        report(ground, *batch)
    assert is_paused(ground) is paused


def test_a_pause_says_why_and_by_whom_and_is_about_its_account_alone(ground: Ground) -> None:
    report(ground, *["status_503"] * 9, "connection_refused")
    found = row(ground)
    assert found["observation_pause_reason"] == "10 looks in a row failed, the last one with: connection_refused"
    assert found["observation_paused_by"] == "coatcheck"
    assert found["observation_probe_at"] - found["observation_paused_at"] == timedelta(seconds=FIRST_PROBE_S)
    other = row(ground, "other")
    assert (other["observation_paused_at"], other["failed_look_count"]) == (None, 0)
    (provider,) = ground.sql("select dispatch_paused_at from coatcheck.providers")
    assert provider["dispatch_paused_at"] is None


def test_nothing_is_looked_at_before_the_instant_and_one_look_then_however_many_claim(ground: Ground) -> None:
    rendering(ground, 12)
    pause(ground)
    assert ground.claim(Action.OBSERVE) == []
    ground.database.move_time(FIRST_PROBE_S + 0.1)
    barrier = Barrier(6)

    def claim(number: int) -> list[Message]:
        with Ground(ground.database, f"claimer-{number}") as claimer:
            barrier.wait()
            return claimer.claim(Action.OBSERVE, lease_s=LEASE_S)

    with ThreadPoolExecutor(6) as pool:
        claimed = list(itertools.chain.from_iterable(pool.map(claim, range(6))))
    assert [message.is_tried for message in claimed] == [True]
    # whoever has it may be dead: the next one is tried when its lease is over
    ground.database.move_time(LEASE_S - 1)
    assert ground.claim(Action.OBSERVE) == []
    ground.database.move_time(1.1)
    assert len(ground.claim(Action.OBSERVE)) == 1


def test_each_try_that_fails_doubles_the_time_to_the_next_up_to_a_minute_and_an_answer_ends_the_pause(
    ground: Ground,
) -> None:
    rendering(ground, 3)
    pause(ground)
    waits = []
    for _ in range(5):
        ended(ground, probe(ground), "status_503")
        waits.append(round(due_in_s(ground)))
    assert waits == [10, 20, 40, LAST_PROBE_S, LAST_PROBE_S]
    ended(ground, probe(ground), None)
    assert not is_paused(ground)
    assert row(ground)["failed_look_count"] == 0
    looks = ground.claim(Action.OBSERVE)
    assert [message.is_tried for message in looks] == [False] * 3
    pause(ground)
    assert round(due_in_s(ground)) == FIRST_PROBE_S


def test_looks_from_before_the_pause_do_not_prolong_it_and_one_that_is_answered_ends_it(ground: Ground) -> None:
    before = now(ground)
    pause(ground)
    probe_at = row(ground)["observation_probe_at"]
    for _ in range(3):
        report(ground, *[FAIL] * 50, leased_at=before)
    assert row(ground)["observation_probe_at"] == probe_at
    assert row(ground)["failed_probe_count"] == 0
    report(ground, None, leased_at=before)
    assert not is_paused(ground)


def test_a_look_that_had_nothing_to_ask_leaves_the_pause_to_be_tried_by_the_next_one_at_once(ground: Ground) -> None:
    rendering(ground, 2)
    before = now(ground)
    pause(ground)

    def spared(leased_at: datetime) -> None:
        (made,) = told(ground, None, leased_at=leased_at)
        ground.run(report_looks(ground.line, [replace(made, is_made=False)]))

    spared(before)
    assert round(due_in_s(ground)) == FIRST_PROBE_S
    first = probe(ground)
    assert round(due_in_s(ground)) == LEASE_S
    spared(first.leased_at)
    assert (is_paused(ground), row(ground)["failed_probe_count"]) == (True, 0)
    ended(ground, probe(ground), None)
    assert not is_paused(ground)


@pytest.mark.parametrize("first", ["nothing", "looks that failed"])
def test_a_persons_pause_has_no_tries_and_is_ended_by_no_look_but_by_a_person(ground: Ground, first: str) -> None:
    rendering(ground, 2)
    if first != "nothing":
        pause(ground)
    ground.run(
        pauses.pause(
            ground.line, "genace", reason="their maintenance", actor="ada", what=Pausable.OBSERVATION, faults=NO_FAULTS
        )
    )
    report(ground, *[FAIL] * 30)
    report(ground, None)
    ground.database.move_time(3600)
    assert ground.claim(Action.OBSERVE) == []
    found = row(ground)
    assert (found["observation_pause_reason"], found["observation_paused_by"]) == ("their maintenance", "ada")
    assert found["observation_probe_at"] is None
    resumed = ground.run(
        pauses.resume(
            ground.line, "genace", reason="they are back", actor="bob", what=Pausable.OBSERVATION, faults=NO_FAULTS
        )
    )
    assert (resumed.observation_paused_at, resumed.failed_look_count) == (None, 0)
    assert (resumed.observation_resume_reason, resumed.observation_resumed_by) == ("they are back", "bob")
    assert len(ground.claim(Action.OBSERVE)) == 2


@pytest.mark.parametrize("account", ["known", "of an older worker"])
def test_a_pause_of_looks_leaves_dispatches_and_deliveries_alone(ground: Ground, account: str) -> None:
    if account != "known":
        ground.sql("delete from coatcheck.accounts where account = 'genace'")
    ground.enqueue("prepared")
    operation_id = ground.enqueue("delivering")
    ground.succeed(operation_id)
    ground.run(
        pauses.pause(ground.line, "genace", reason="r", actor="ada", what=Pausable.OBSERVATION, faults=NO_FAULTS)
    )
    assert is_paused(ground)
    assert len(ground.claim(Action.DISPATCH)) == 1
    assert len(ground.claim(Action.DELIVER)) == 1
    if account != "known":
        # what an older worker began is not counted
        ground.sql("update coatcheck.accounts set max_in_flight = null")


def test_patience_that_a_look_was_asked_for_is_kept_by_all_and_by_the_look_that_tries_a_pause(ground: Ground) -> None:
    rendering(ground, 2)
    report(ground, None, shut_s=30)
    report(ground, None, shut_s=2)
    assert ground.claim(Action.OBSERVE) == []
    pause(ground)
    ground.database.move_time(29)
    assert due_in_s(ground) < 0
    assert ground.claim(Action.OBSERVE) == []
    ground.database.move_time(1.1)
    assert len(ground.claim(Action.OBSERVE)) == 1


def doubt(ground: Ground) -> OperationId:
    """An operation that is to be looked up by now."""
    operation_id = ground.enqueue("in doubt")
    event = ev.Doubted(dispatch_id=ground.mark(operation_id), cause="closed", looked_up=True)
    assert ground.happen(operation_id, event).applied
    ground.database.move_time(60)
    return operation_id


def test_a_service_is_not_searched_while_looks_are_paused_and_a_look_tries_the_pause_before_a_search(
    ground: Ground,
) -> None:
    in_doubt = doubt(ground)
    (seen,) = rendering(ground, 1)
    pause(ground)

    def claimed(*actions: Action) -> list[OperationId]:
        wanted = [
            Wanted(action=action, provider="genace", account=ACCOUNT, room=9, lease_s=LEASE_S) for action in actions
        ]
        found = ground.run(ground.leases.claim(wanted, doubts=9, doubt_lease_s=30, lookups={"genace": ACCOUNT}))
        return [message.operation_id for message in found]

    assert claimed(Action.OBSERVE) == []
    ground.database.move_time(FIRST_PROBE_S + 0.1)
    assert claimed(Action.OBSERVE) == [seen]
    ground.database.move_time(LEASE_S - 1)
    assert claimed() == []
    ground.database.move_time(1.1)
    assert claimed() == [in_doubt]


def test_what_cannot_be_looked_at_for_a_pause_waits_and_is_not_left_to_do(ground: Ground) -> None:
    doubt(ground)
    rendering(ground, 2)
    (leased,) = ground.claim(Action.OBSERVE, room=1)

    def left() -> tuple[int, int]:
        roles = [Action.OBSERVE, Action.RECONCILE]
        found = ground.run(ground.leases.left(roles, ["genace"], [ACCOUNT]))
        return found.left_count, found.waiting_count

    assert left() == (3, 0)
    pause(ground)
    assert left() == (1, 2), "somebody is looking still"
    ground.database.move_time(leased.lease_s)
    assert left() == (0, 3), "whoever had it died, and nobody may take it"
    report(ground, None)
    assert left() == (3, 0)
