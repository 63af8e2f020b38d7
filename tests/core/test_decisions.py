"""What a person may decide: when it is too early, what it authorises, and what becomes of the money."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coatcheck.core import events as ev
from coatcheck.core.actions import Action, Aim, DropAll
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.machine import advance
from coatcheck.core.operation import Outcome, Phase, RenderState
from coatcheck.core.steps import DecideStep, Refusal, Refused, Settlement
from core.operations import EVENTS, JOB, NOW, operation_in

KNOWN = (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)


LATER = NOW + timedelta(microseconds=1)


@pytest.mark.parametrize(
    "early",
    [
        ev.ProveAbsent(actor="ann", reason="listed", quiescent_at=LATER),
        ev.Redispatch(actor="ann", reason="needed", quiescent_at=LATER),
        ev.RequestRedispatch(actor="ann", reason="needed", quiescent_at=LATER),
    ],
)
def test_no_new_authorisation_while_a_paused_worker_could_still_send(early: ev.Event) -> None:
    answer = advance(operation_in(Phase.UNCERTAIN), early, NOW)

    assert isinstance(answer, Refusal)
    assert answer.code is Refused.NOT_QUIESCENT


@pytest.mark.parametrize(
    ("kind", "outcome", "settles"),
    [(Kind.PROVE_ABSENT, Outcome.PROVEN_ABSENT, Settlement.FREE), (Kind.REDISPATCH, None, Settlement.SPENT)],
)
def test_a_decision_to_send_again_authorises_one_more_post_and_settles_the_former(
    kind: Kind, outcome: Outcome | None, settles: Settlement
) -> None:
    step = advance(operation_in(Phase.UNCERTAIN, cancel_requested_at=NOW), EVENTS[kind], NOW)

    assert isinstance(step, DecideStep)
    assert step.authorises
    assert step.clears_withdrawal
    assert step.outcome is outcome
    assert step.settles is settles
    assert step.actor == "ann"
    assert step.lanes == (Aim(lane=0, action=Action.DISPATCH),)


@pytest.mark.parametrize("phase", KNOWN)
def test_only_what_is_missing_or_stalled_can_be_written_off_once_the_job_is_known(phase: Phase) -> None:
    write_off = ev.WriteOff(actor="ann", reason="gone")

    missing = advance(operation_in(phase, render_state=RenderState.MISSING), write_off, NOW)
    stalled = advance(operation_in(phase), replace(write_off, stalled=True), NOW)

    assert isinstance(missing, DecideStep)
    assert missing.phase is Phase.ABANDONED
    assert isinstance(stalled, DecideStep)


def test_an_adopted_job_is_observed() -> None:
    step = advance(operation_in(Phase.UNCERTAIN), EVENTS[Kind.ADOPT], NOW)

    assert isinstance(step, DecideStep)
    assert step.remote_job_id == JOB
    assert step.lanes == (Aim(lane=0, action=Action.OBSERVE),)


@pytest.mark.parametrize(("released", "settles"), [(False, Settlement.SPENT), (True, Settlement.FREE)])
def test_a_write_off_ends_all_work_and_spends_what_is_held_unless_it_is_released(
    released: bool, settles: Settlement
) -> None:
    step = advance(operation_in(Phase.UNCERTAIN), ev.WriteOff(actor="ann", reason="late", released=released), NOW)

    assert isinstance(step, DecideStep)
    assert (step.phase, step.settles, step.authorises) == (Phase.ABANDONED, settles, False)
    assert step.lanes == (DropAll(),)


@pytest.mark.parametrize("phase", [Phase.UNCERTAIN, Phase.REJECTED])
def test_asking_for_a_second_person_changes_nothing_but_the_record(phase: Phase) -> None:
    step = advance(operation_in(phase), EVENTS[Kind.REQUEST_REDISPATCH], NOW)

    assert isinstance(step, DecideStep)
    assert (step.phase, step.settles, step.authorises, step.lanes) == (phase, None, False, ())
