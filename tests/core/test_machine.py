"""The whole table: every phase with every event, and what each rule writes. No database, under a second."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from coatcheck.core import events as ev
from coatcheck.core.actions import Action, Aim, Drop, DropAll, Look, Park, ParkReason, WaitReason
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.machine import RULES, advance
from coatcheck.core.operation import FINAL_RENDER_STATES, Operation, Outcome, Phase, RenderState
from coatcheck.core.steps import (
    ConcludeStep,
    DecideStep,
    DeliverStep,
    MarkStep,
    Refusal,
    Refused,
    SnapshotStep,
    Step,
)
from core.operations import DISPATCH, EVENTS, NOW, OTHER_JOB, OUTPUT, operation_in, snapshot, succeeded

REPLIES = (Kind.ACCEPTED, Kind.FAILED_WITH_ID, Kind.REJECTED, Kind.THROTTLED, Kind.NOT_SENT, Kind.DOUBTED)
KNOWN = (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)
OPEN = (Phase.DISPATCHING, Phase.UNCERTAIN)

# What an event leads to in a phase, with a plain operation and event: the new phase, "=" for a step that keeps the phase,
# or the refusal. A pair that is missing must be refused as not in the table.
EXPECTED: dict[tuple[Phase, Kind], Phase | str | Refused] = {
    (Phase.PREPARED, Kind.MARK): Phase.DISPATCHING,
    (Phase.PREPARED, Kind.ACCEPTED): Phase.ACCEPTED,
    (Phase.PREPARED, Kind.FAILED_WITH_ID): Phase.SUBMISSION_FAILED,
    (Phase.PREPARED, Kind.REJECTED): "=",
    (Phase.PREPARED, Kind.THROTTLED): "=",
    (Phase.PREPARED, Kind.NOT_SENT): "=",
    (Phase.PREPARED, Kind.DOUBTED): "=",
    (Phase.PREPARED, Kind.CANCEL): Phase.CANCELLED,
    (Phase.PREPARED, Kind.DEADLINE_PASSED): Phase.CANCELLED,
    **{(phase, Kind.ACCEPTED): Phase.ACCEPTED for phase in OPEN},
    **{(phase, Kind.FAILED_WITH_ID): Phase.SUBMISSION_FAILED for phase in OPEN},
    **{(phase, Kind.REJECTED): Phase.REJECTED for phase in OPEN},
    **{(phase, Kind.THROTTLED): Phase.PREPARED for phase in OPEN},
    **{(phase, Kind.NOT_SENT): Phase.PREPARED for phase in OPEN},
    **{(phase, Kind.CANCEL): "=" for phase in OPEN},
    (Phase.DISPATCHING, Kind.DOUBTED): Phase.UNCERTAIN,
    (Phase.DISPATCHING, Kind.LEASE_ENDED): Phase.UNCERTAIN,
    (Phase.UNCERTAIN, Kind.DOUBTED): "=",
    (Phase.UNCERTAIN, Kind.ADOPT): Phase.ACCEPTED,
    (Phase.UNCERTAIN, Kind.PROVE_ABSENT): Phase.PREPARED,
    (Phase.UNCERTAIN, Kind.REDISPATCH): Phase.PREPARED,
    (Phase.UNCERTAIN, Kind.WRITE_OFF): Phase.ABANDONED,
    (Phase.REJECTED, Kind.REDISPATCH): Phase.PREPARED,
    (Phase.UNCERTAIN, Kind.REQUEST_REDISPATCH): "=",
    (Phase.REJECTED, Kind.REQUEST_REDISPATCH): "=",
    **{
        (phase, reply): "=" for phase in (*KNOWN, Phase.REJECTED, Phase.CANCELLED, Phase.ABANDONED) for reply in REPLIES
    },
    **{(phase, Kind.SNAPSHOT): "=" for phase in KNOWN},
    **{(phase, Kind.REPEATED): "=" for phase in KNOWN},
    **{(phase, Kind.NOT_FOUND): "=" for phase in KNOWN},
    **{(phase, Kind.STALLED): "=" for phase in KNOWN},
    **{(phase, Kind.OUTPUT_STORED): Refused.NOT_IN_TABLE for phase in KNOWN},
    **{(phase, Kind.CANCEL): "=" for phase in KNOWN},
    **{(phase, Kind.WRITE_OFF): Refused.STILL_LOOKING for phase in KNOWN},
    **{(phase, Kind.REOBSERVE): "=" for phase in KNOWN},
    **{(phase, Kind.CANCEL_ANSWERED): Refused.UNCHANGED for phase in KNOWN},
    **{(phase, Kind.NOTE): "=" for phase in Phase},
    **{(phase, Kind.RESUME): "=" for phase in (Phase.PREPARED, Phase.DISPATCHING, *KNOWN)},
}


def phase_of(step: Step, operation: Operation) -> Phase:
    match step:
        case MarkStep():
            return Phase.DISPATCHING
        case ConcludeStep():
            return step.phase or operation.phase
        case DecideStep():
            return step.phase
        case SnapshotStep() | DeliverStep():
            return operation.phase


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("kind", Kind)
def test_every_event_in_every_phase_leads_where_the_design_says_or_is_refused(phase: Phase, kind: Kind) -> None:
    operation = operation_in(phase)
    expected = EXPECTED.get((phase, kind), Refused.NOT_IN_TABLE)

    answer = advance(operation, EVENTS[kind], NOW)

    if isinstance(expected, Refused):
        assert isinstance(answer, Refusal)
        assert answer.code is expected
    else:
        assert not isinstance(answer, Refusal), answer
        assert phase_of(answer, operation) is (phase if expected == "=" else expected)


def test_every_kind_of_event_has_an_example_and_says_its_own_kind() -> None:
    assert {kind: event.kind for kind, event in EVENTS.items()} == {kind: kind for kind in Kind}


def test_a_row_behind_an_unconditional_row_of_its_pair_would_never_apply() -> None:
    closed: set[tuple[Phase, Kind]] = set()
    for rule in RULES:
        assert (rule.phase, rule.kind) not in closed, rule
        if rule.when is None:
            closed.add((rule.phase, rule.kind))


def test_only_a_reply_or_a_person_leads_out_of_uncertain() -> None:
    leaving = {rule.kind for rule in RULES if rule.phase is Phase.UNCERTAIN and rule.to is not None}

    assert leaving <= {*REPLIES, Kind.ADOPT, Kind.PROVE_ABSENT, Kind.REDISPATCH, Kind.WRITE_OFF}


def test_only_the_mark_leads_into_dispatching_and_only_from_prepared() -> None:
    assert [(rule.phase, rule.kind) for rule in RULES if rule.to is Phase.DISPATCHING] == [(Phase.PREPARED, Kind.MARK)]


@pytest.mark.parametrize("phase", [Phase.CANCELLED, Phase.ABANDONED])
def test_nothing_leads_out_of_a_closed_phase(phase: Phase) -> None:
    assert all(rule.to is None for rule in RULES if rule.phase is phase)


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.NOT_SENT])
@pytest.mark.parametrize("wish", ["cancel", "deadline"])
def test_a_return_to_prepared_ends_cancelled_where_nobody_wants_it_any_more(
    phase: Phase, kind: Kind, wish: str
) -> None:
    withdrawn = {"cancel": {"cancel_requested_at": NOW}, "deadline": {"dispatch_by_at": NOW}}[wish]

    step = advance(operation_in(phase, **withdrawn), EVENTS[kind], NOW)

    assert isinstance(step, ConcludeStep)
    assert step.phase is Phase.CANCELLED
    assert step.withdrawn
    assert step.lanes == (DropAll(),)


def test_a_withdrawn_operation_is_not_marked() -> None:
    answer = advance(operation_in(Phase.PREPARED, dispatch_by_at=NOW), EVENTS[Kind.MARK], NOW)

    assert isinstance(answer, Refusal)
    assert answer.code is Refused.WITHDRAWN


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (Kind.ACCEPTED, Outcome.ACCEPTED),
        (Kind.FAILED_WITH_ID, Outcome.SUBMISSION_FAILED),
        (Kind.REJECTED, Outcome.REJECTED),
        (Kind.THROTTLED, Outcome.THROTTLED),
        (Kind.NOT_SENT, Outcome.NOT_SENT),
        (Kind.DOUBTED, Outcome.UNCERTAIN),
    ],
)
@pytest.mark.parametrize("phase", Phase)
def test_the_evidence_of_a_reply_is_written_in_every_phase(phase: Phase, kind: Kind, outcome: Outcome) -> None:
    step = advance(operation_in(phase), EVENTS[kind], NOW)

    assert isinstance(step, ConcludeStep)
    assert step.outcome is outcome
    assert step.dispatch_id == DISPATCH
    assert (step.remote_job_id is not None) == (kind in (Kind.ACCEPTED, Kind.FAILED_WITH_ID))


@pytest.mark.parametrize("phase", OPEN)
def test_what_is_due_after_the_post(phase: Phase) -> None:
    def lanes(kind: Kind) -> tuple[object, ...]:
        step = advance(operation_in(phase), EVENTS[kind], NOW)
        assert isinstance(step, ConcludeStep)
        return step.lanes

    observe = (Aim(lane=0, action=Action.OBSERVE),)
    assert lanes(Kind.ACCEPTED) == observe
    assert lanes(Kind.FAILED_WITH_ID) == observe
    assert lanes(Kind.REJECTED) == (DropAll(),)
    assert lanes(Kind.THROTTLED) == (Aim(lane=0, action=Action.DISPATCH, wait_reason=WaitReason.THROTTLED),)
    assert lanes(Kind.NOT_SENT) == (Aim(lane=0, action=Action.DISPATCH, wait_reason=WaitReason.NOT_SENT),)


def test_doubt_waits_for_a_person() -> None:
    park = (Park(lane=0, action=Action.RECONCILE, reason=ParkReason.UNCERTAIN),)
    for kind in (Kind.DOUBTED, Kind.LEASE_ENDED):
        step = advance(operation_in(Phase.DISPATCHING), EVENTS[kind], NOW)
        assert isinstance(step, ConcludeStep | DecideStep)
        assert step.lanes == park


@pytest.mark.parametrize("phase", KNOWN)
def test_a_success_with_outputs_is_delivered_output_by_output(phase: Phase) -> None:
    outputs = (OUTPUT, replace(OUTPUT, index=1))

    step = advance(operation_in(phase), snapshot(RenderState.SUCCEEDED, outputs=outputs), NOW)

    assert isinstance(step, SnapshotStep)
    assert step.render_state is RenderState.SUCCEEDED
    assert step.settles
    assert step.outputs == outputs
    assert step.lanes == (Drop(lane=0), Aim(lane=1, action=Action.DELIVER), Aim(lane=2, action=Action.DELIVER))


def test_a_success_word_without_output_is_rendering_for_a_minute_and_then_failed() -> None:
    operation, bare = operation_in(Phase.ACCEPTED), snapshot(RenderState.SUCCEEDED)

    first = advance(operation, bare, NOW)
    assert isinstance(first, SnapshotStep)
    assert first.render_state is RenderState.RENDERING
    assert first.lanes == (Aim(lane=0, action=Action.OBSERVE, wait_reason=WaitReason.NO_OUTPUT),)

    def later(seconds: float) -> Step | Refusal:
        waited = ev.Waited(reason=WaitReason.NO_OUTPUT, since_at=NOW - timedelta(seconds=seconds), count=3)
        waiting = replace(operation, render_state=RenderState.RENDERING, remote_status=bare.remote_status)
        return advance(waiting, replace(bare, waited=waited), NOW)

    within = later(59.9)
    assert isinstance(within, Refusal)
    assert within.code is Refused.UNCHANGED
    over = later(60)
    assert isinstance(over, SnapshotStep)
    assert over.render_state is RenderState.FAILED
    assert over.error_code == "no_output"
    assert over.incident is not None


@pytest.mark.parametrize("state", sorted(FINAL_RENDER_STATES - {RenderState.SUCCEEDED}))
def test_a_failed_render_stays_under_observation_until_its_accounting_is_known(state: RenderState) -> None:
    unknown = advance(operation_in(Phase.ACCEPTED), snapshot(state), NOW)
    assert isinstance(unknown, SnapshotStep)
    assert unknown.lanes == (Aim(lane=0, action=Action.OBSERVE, wait_reason=WaitReason.ACCOUNTING),)

    settled = ev.Credits(charged=Decimal(5), refunded=Decimal(5))
    known = advance(operation_in(Phase.ACCEPTED), snapshot(state, credits=settled), NOW)
    assert isinstance(known, SnapshotStep)
    assert known.lanes == (Drop(lane=0),)


@pytest.mark.parametrize("final", sorted(FINAL_RENDER_STATES))
@pytest.mark.parametrize("said", [*RenderState, None])
def test_nothing_a_service_says_replaces_a_final_state(final: RenderState, said: RenderState | None) -> None:
    operation = operation_in(Phase.ACCEPTED, render_state=final, remote_status=str(final), final_at=NOW)

    answer = advance(operation, snapshot(said, outputs=(OUTPUT,)), NOW)

    assert isinstance(answer, Refusal) or (isinstance(answer, SnapshotStep) and answer.render_state is final)


def test_only_the_word_that_brought_no_output_may_go_on_standing_beside_a_failure() -> None:
    """A success word beside a render that the service itself called failed is a contradiction: not its word, not its money."""
    settled = ev.Credits(charged=Decimal(5), refunded=Decimal(0))
    waited = ev.Waited(reason=WaitReason.ACCOUNTING, since_at=NOW, count=1)
    look = replace(snapshot(RenderState.SUCCEEDED, credits=settled), waited=waited)
    theirs = operation_in(Phase.ACCEPTED, render_state=RenderState.FAILED, remote_status="failed", final_at=NOW)
    ours = replace(theirs, remote_status=look.remote_status)

    contradiction = advance(theirs, look, NOW)
    assert isinstance(contradiction, Refusal)
    assert contradiction.code is Refused.REGRESSED
    accounting = advance(ours, look, NOW)
    assert isinstance(accounting, SnapshotStep)
    assert (accounting.render_state, accounting.credits) == (RenderState.FAILED, settled)


def test_a_final_operation_takes_fresh_sources_for_what_is_not_delivered() -> None:
    fresh = replace(OUTPUT, url="https://service.example/out/0?signature=new")
    look = snapshot(RenderState.SUCCEEDED, outputs=(fresh,), stored_urls=((0, OUTPUT.url),))

    step = advance(succeeded(), look, NOW)

    assert isinstance(step, SnapshotStep)
    assert step.outputs == (fresh,)
    assert Aim(lane=1, action=Action.DELIVER, wait_reason=WaitReason.DELIVERY_FAILED) in step.lanes


def test_a_word_never_seen_before_is_kept_and_is_not_final_and_raises_an_alarm() -> None:
    step = advance(operation_in(Phase.ACCEPTED, render_state=RenderState.QUEUED), snapshot(None), NOW)

    assert isinstance(step, SnapshotStep)
    assert step.render_state is RenderState.QUEUED
    assert step.remote_status == "novel"
    assert step.incident is not None


def test_a_snapshot_of_another_job_is_no_permission_to_overwrite() -> None:
    answer = advance(operation_in(Phase.ACCEPTED), snapshot(remote_job_id=OTHER_JOB), NOW)

    assert isinstance(answer, Refusal)
    assert answer.code is Refused.WRONG_ID


def test_the_same_state_changes_nothing() -> None:
    operation = operation_in(Phase.ACCEPTED, render_state=RenderState.RENDERING, remote_status="rendering")

    answer = advance(operation, snapshot(RenderState.RENDERING), NOW)

    assert isinstance(answer, Refusal)
    assert answer.code is Refused.UNCHANGED


def not_found(operation: Operation, waited: ev.Waited) -> Step | Refusal:
    return advance(operation, ev.NotFound(grace_s=60, waited=waited), NOW)


@pytest.mark.parametrize(("age_s", "missing"), [(59.9, False), (60, True)])
def test_before_any_good_look_the_grace_runs_from_the_save_of_the_id(age_s: float, missing: bool) -> None:
    operation = operation_in(Phase.ACCEPTED, accepted_at=NOW - timedelta(seconds=age_s))

    answer = not_found(operation, ev.Waited())

    assert isinstance(answer, DecideStep) is missing
    if isinstance(answer, DecideStep):
        assert answer.render_state is RenderState.MISSING
        assert answer.lanes == (Park(lane=0, action=Action.OBSERVE, reason=ParkReason.MISSING),)


@pytest.mark.parametrize(
    ("waited", "missing"),
    [
        (ev.Waited(), False),
        (ev.Waited(reason="not_found", since_at=NOW - timedelta(seconds=59), count=4), False),
        (ev.Waited(reason="active", since_at=NOW - timedelta(seconds=600), count=9), False),
        (ev.Waited(reason="not_found", since_at=NOW - timedelta(seconds=60), count=2), True),
    ],
)
def test_after_a_good_look_two_misses_a_grace_apart_with_nothing_between_are_needed(
    waited: ev.Waited, missing: bool
) -> None:
    operation = operation_in(Phase.ACCEPTED, remote_status="queued", render_state=RenderState.QUEUED)

    assert isinstance(not_found(operation, waited), DecideStep) is missing


def test_a_missing_job_that_is_found_again_goes_on() -> None:
    operation = operation_in(Phase.ACCEPTED, render_state=RenderState.MISSING, remote_status="rendering")

    step = advance(operation, snapshot(RenderState.RENDERING), NOW)

    assert isinstance(step, SnapshotStep)
    assert step.render_state is RenderState.RENDERING


@pytest.mark.parametrize("phase", KNOWN)
def test_deliveries_touch_their_own_lane_and_never_the_render(phase: Phase) -> None:
    stored, failed, expired = (
        advance(succeeded(phase), EVENTS[kind], NOW)
        for kind in (Kind.OUTPUT_STORED, Kind.OUTPUT_FAILED, Kind.SOURCE_EXPIRED)
    )

    assert isinstance(stored, DeliverStep)
    assert stored.lanes == (Drop(lane=1),)
    assert isinstance(failed, DeliverStep)
    assert failed.lanes == (Park(lane=1, action=Action.DELIVER, reason=ParkReason.DELIVERY_FAILED),)
    assert isinstance(expired, DeliverStep)
    assert expired.lanes[0] == Look()
