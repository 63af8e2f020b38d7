"""What may be in hand together, on a clock that the test moves: a suspect alone, and for all others a bounded wait."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from coatcheck.core.actions import Action
from coatcheck.core.events import Waited
from coatcheck.core.operation import OperationId
from coatcheck.queue.leases import Message
from coatcheck.seams import Clock
from coatcheck.workers.seclusion import ALONE_S, DELIVERIES_S, DRAIN_S, TURN_S, Seclusion

PLAIN = Message(
    operation_id=OperationId(UUID(int=1)),
    lane=0,
    action=Action.OBSERVE,
    provider="genace",
    account="genace",
    expected_revision=0,
    expected_remote_job_id=None,
    lease_token=1,
    lease_count=1,
    leased_at=datetime(2026, 11, 29, tzinfo=UTC),
    lease_s=45,
    waited=Waited(),
)
SUSPECT = replace(PLAIN, operation_id=OperationId(UUID(int=2)), lease_count=3, is_suspect=True)
TOLD = replace(PLAIN, has_suspects=True)


class MovedClock(Clock):
    """Boot time as the test says."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def boottime(self) -> float:
        return self.at


class Course:
    """One worker's claims: what it has in hand, and what the rule says of it."""

    def __init__(self) -> None:
        self.clock = MovedClock()
        self.rule = Seclusion(self.clock)
        self.in_hand: Counter[Action] = Counter()

    def claim(self, *messages: Message) -> None:
        self.in_hand.update(message.action for message in messages)
        self.rule.claimed(messages, self.in_hand)

    def end(self, message: Message) -> None:
        self.in_hand[message.action] -= 1
        self.rule.ended(message)

    @property
    def may_claim(self) -> bool:
        return self.rule.may_claim(self.in_hand)

    @property
    def is_free(self) -> bool:
        return self.rule.is_free(self.in_hand)


@pytest.fixture
def course() -> Course:
    return Course()


def test_a_healthy_worker_claims_whenever_it_likes_and_gets_a_suspect_only_with_nothing_in_hand(course: Course) -> None:
    assert (course.may_claim, course.is_free) == (True, True)
    course.claim(PLAIN, PLAIN)
    assert (course.may_claim, course.is_free) == (True, False)


def test_beside_a_suspect_nothing_is_claimed_until_it_ended(course: Course) -> None:
    course.claim(SUSPECT)
    assert not course.may_claim
    course.end(SUSPECT)
    assert (course.may_claim, course.is_free) == (True, True)


def test_a_suspect_that_does_no_harm_for_a_while_is_company_like_any_other(course: Course) -> None:
    course.claim(SUSPECT)
    course.clock.at += ALONE_S
    assert (course.may_claim, course.is_free) == (True, False)


def test_who_hears_of_a_suspect_claims_no_more_until_all_in_hand_ended(course: Course) -> None:
    course.claim(TOLD, TOLD)
    assert not course.may_claim
    course.end(TOLD)
    assert not course.may_claim
    course.end(TOLD)
    assert (course.may_claim, course.is_free) == (True, True)


def test_a_suspect_that_another_worker_took_meanwhile_is_forgotten(course: Course) -> None:
    course.claim(TOLD)
    course.end(TOLD)
    course.claim()
    course.claim(PLAIN)
    assert course.may_claim


def test_who_empties_its_hands_asks_once_a_second_whether_that_is_still_needed(course: Course) -> None:
    wants = [course.rule.wants_to_know]
    course.claim(TOLD)
    for _ in range(2):
        course.clock.at += 1
        wants += [course.rule.wants_to_know, course.rule.wants_to_know]
    course.rule.forget()
    course.clock.at += 1
    assert [*wants, course.rule.wants_to_know] == [False, True, False, True, False, False]
    assert course.may_claim


def test_large_deliveries_are_waited_for_a_while_and_then_kept_company(course: Course) -> None:
    delivery = replace(TOLD, action=Action.DELIVER, lane=1)
    course.claim(delivery, TOLD)
    course.clock.at += DELIVERIES_S
    assert not course.may_claim
    course.end(TOLD)
    assert (course.may_claim, course.is_free) == (True, True)


def test_nothing_is_waited_for_without_end(course: Course) -> None:
    course.claim(TOLD)
    course.clock.at += DRAIN_S
    assert (course.may_claim, course.is_free) == (True, False)
    course.claim(TOLD)
    assert course.may_claim
    course.clock.at += TURN_S
    course.claim(TOLD)
    assert not course.may_claim


def test_many_suspects_and_all_else_take_turns(course: Course) -> None:
    handled, secluded_s = 0, 0.0
    while course.is_free:
        course.claim(SUSPECT)
        course.clock.at += 0.05
        course.end(SUSPECT)
        handled, secluded_s = handled + 1, secluded_s + 0.05
        assert secluded_s <= TURN_S + 1
    assert handled > 500
    assert (course.may_claim, course.is_free) == (True, False)
    course.claim(TOLD)
    assert course.may_claim
    course.clock.at += ALONE_S + TURN_S
    course.claim(TOLD)
    assert not course.may_claim


def test_where_nothing_else_is_due_suspects_need_not_wait_for_a_turn(course: Course) -> None:
    while course.is_free:
        course.claim(SUSPECT)
        course.clock.at += 1
        course.end(SUSPECT)
    course.claim()
    assert course.is_free
