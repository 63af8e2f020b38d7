"""The life of an operation: one flat table of (phase, event), and nothing outside it.

The first row whose condition holds applies; a pair without a row is refused. Conclusions are conditional, evidence is unconditional: a
reply in a phase that cannot use it is still written down (`to` None), so a paid id is never dropped. `docs/states.md` is generated from
`RULES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coatcheck.core import consequences as do
from coatcheck.core import events as ev
from coatcheck.core.actions import COURSE, WaitReason
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.operation import FINAL_RENDER_STATES, CancelAnswer, Operation, Phase, RenderState
from coatcheck.core.steps import Refusal, Refused, Step

OUTPUT_GRACE_S = 60.0
"""How long a success word may stand without usable output before it counts as failed."""


# -- conditions --------------------------------------------------------------------------------------------------------


def withdrawn(operation: Operation, _event: Any, _now: datetime) -> bool:
    """A cancel was requested or `dispatch_by_at` passed."""
    return operation.is_withdrawn


def early(_operation: Operation, event: ev.ProveAbsent | ev.Redispatch | ev.RequestRedispatch, now: datetime) -> bool:
    """A paused worker could still send: `quiescent_at` lies ahead."""
    return event.quiescent_at is not None and now < event.quiescent_at


def released_early(_operation: Operation, event: ev.WriteOff, now: datetime) -> bool:
    """The money is to be released while a paused worker could still spend it: `quiescent_at` lies ahead."""
    return event.released and event.quiescent_at is not None and now < event.quiescent_at


def foreign(operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """The snapshot names another remote job."""
    return event.remote_job_id != operation.remote_job_id


def final(operation: Operation, _event: Any, _now: datetime) -> bool:
    """The render is final already."""
    return operation.is_final


def contradicts(operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """The render is final already and the service now says something else."""
    # a success word that never got an output failed for us; as long as the service says that same word, it contradicts nothing
    failed_for_us = operation.render_state is RenderState.FAILED and event.remote_status == operation.remote_status
    return operation.is_final and event.render_state is not operation.render_state and not failed_for_us


def freshens(operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """A final operation, and new sources for undelivered outputs or the money that was missing."""
    known = dict(event.stored_urls)
    fresh = any(known.get(output.index, output.url) != output.url for output in event.outputs)
    figure = event.credits is not None and event.credits.unit in (None, operation.unit)
    owes_accounting = event.waited.reason == WaitReason.ACCOUNTING and figure
    return operation.is_final and (fresh or owes_accounting)


def _without_output(event: ev.Snapshot) -> bool:
    return event.render_state is RenderState.SUCCEEDED and not event.outputs


def output_overdue(_operation: Operation, event: ev.Snapshot, now: datetime) -> bool:
    """A success word has stood without usable output for the whole grace."""
    since_at = event.waited.since_at
    waits = event.waited.reason == WaitReason.NO_OUTPUT and since_at is not None
    return _without_output(event) and waits and now - (since_at or now) >= timedelta(seconds=OUTPUT_GRACE_S)


def output_missing(_operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """A success word without usable output, for the first time."""
    return _without_output(event) and event.waited.reason != WaitReason.NO_OUTPUT


def output_awaited(_operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """A success word without usable output, within the grace."""
    return _without_output(event)


def finishes(_operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """The service names a final state."""
    return event.render_state in FINAL_RENDER_STATES


def changes(operation: Operation, event: ev.Snapshot, _now: datetime) -> bool:
    """The service names another state or word than the one we keep."""
    state = event.render_state or operation.render_state
    return event.remote_status != operation.remote_status or state is not operation.render_state


def lost(operation: Operation, event: ev.NotFound, now: datetime) -> bool:
    """Not found for the whole grace: from the save of the id, or after a good snapshot since the first 404 in a row."""
    grace = timedelta(seconds=event.grace_s)
    if operation.remote_status is None:
        return operation.accepted_at is not None and now - operation.accepted_at >= grace
    first_at = event.waited.since_at if event.waited.reason == WaitReason.NOT_FOUND else None
    return first_at is not None and now - first_at >= grace


def observable(operation: Operation, _event: Any, _now: datetime) -> bool:
    """The render is not final: there is something left to look for."""
    return not operation.is_final


def succeeded(operation: Operation, _event: Any, _now: datetime) -> bool:
    """The render succeeded, so its outputs are to be delivered."""
    return operation.render_state is RenderState.SUCCEEDED


def unasked(operation: Operation, _event: ev.CancelAnswered, _now: datetime) -> bool:
    """Nobody wants the remote job cancelled any more, or the answer is recorded already."""
    return not operation.owes_cancel


def taken(_operation: Operation, event: ev.CancelAnswered, _now: datetime) -> bool:
    """The service took the wish to cancel."""
    return event.answer is CancelAnswer.TAKEN


def of_course(_operation: Operation, event: ev.Resume, _now: datetime) -> bool:
    """The message is that of the course, not of a delivery."""
    return event.lane == COURSE


def listed(operation: Operation, event: ev.WriteOff, _now: datetime) -> bool:
    """The remote job is missing or its observation stalled."""
    return operation.render_state is RenderState.MISSING or (event.stalled and not operation.is_final)


# -- the table ---------------------------------------------------------------------------------------------------------

Condition = Callable[[Operation, Any, datetime], bool]
Consequence = Callable[[do.Setting, Any], Step]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: in `phase`, when `kind` happens and `when` holds, go `to` (None: the phase stays) and write `do`, or refuse."""

    phase: Phase
    kind: Kind
    to: Phase | None
    name: str
    do: Consequence | Refused
    when: Condition | None = None


def _reply_rows(phase: Phase) -> tuple[Rule, ...]:
    """What the end of a POST means while it is open or in doubt."""
    return (
        Rule(phase, Kind.ACCEPTED, Phase.ACCEPTED, "generation_accepted", do.conclude),
        Rule(phase, Kind.FAILED_WITH_ID, Phase.SUBMISSION_FAILED, "submission_failed", do.conclude),
        Rule(phase, Kind.REJECTED, Phase.REJECTED, "generation_rejected", do.conclude),
        Rule(phase, Kind.THROTTLED, Phase.CANCELLED, "throttled_and_withdrawn", do.conclude, withdrawn),
        Rule(phase, Kind.THROTTLED, Phase.PREPARED, "throttled", do.conclude),
        Rule(phase, Kind.NOT_SENT, Phase.CANCELLED, "not_sent_and_withdrawn", do.conclude, withdrawn),
        Rule(phase, Kind.NOT_SENT, Phase.PREPARED, "not_sent", do.conclude),
    )


def _evidence_rows(phase: Phase, *kinds: Kind) -> tuple[Rule, ...]:
    """A reply that cannot conclude anything here is kept as evidence."""
    return tuple(Rule(phase, kind, None, f"late_{kind}", do.conclude) for kind in kinds)


def _known_job_rows(phase: Phase) -> tuple[Rule, ...]:
    """Accepted and submission_failed are observed and delivered alike."""
    return (
        *_evidence_rows(phase, *_REPLIES),
        Rule(phase, Kind.REPEATED, None, "observed_instead", do.observe_instead, observable),
        Rule(phase, Kind.REPEATED, None, "final_already", Refused.FINAL),
        Rule(phase, Kind.SNAPSHOT, None, "foreign_snapshot", Refused.WRONG_ID, foreign),
        Rule(phase, Kind.SNAPSHOT, None, "regressed", Refused.REGRESSED, contradicts),
        Rule(phase, Kind.SNAPSHOT, None, "refreshed", do.refresh, freshens),
        Rule(phase, Kind.SNAPSHOT, None, "final_already", Refused.UNCHANGED, final),
        Rule(phase, Kind.SNAPSHOT, None, "no_output", do.fail_without_output, output_overdue),
        Rule(phase, Kind.SNAPSHOT, None, "output_awaited", do.await_output, output_missing),
        Rule(phase, Kind.SNAPSHOT, None, "output_still_awaited", Refused.UNCHANGED, output_awaited),
        Rule(phase, Kind.SNAPSHOT, None, "render_finished", do.finish, finishes),
        Rule(phase, Kind.SNAPSHOT, None, "render_progressed", do.progress, changes),
        Rule(phase, Kind.SNAPSHOT, None, "no_change", Refused.UNCHANGED),
        Rule(phase, Kind.NOT_FOUND, None, "final_already", Refused.FINAL, final),
        Rule(phase, Kind.NOT_FOUND, None, "render_missing", do.miss, lost),
        Rule(phase, Kind.NOT_FOUND, None, "within_grace", Refused.UNCHANGED),
        Rule(phase, Kind.STALLED, None, "observation_stalled", do.stall, observable),
        Rule(phase, Kind.STALLED, None, "final_already", Refused.FINAL),
        Rule(phase, Kind.OUTPUT_STORED, None, "output_delivered", do.store_output, succeeded),
        Rule(phase, Kind.OUTPUT_FAILED, None, "delivery_failed", do.fail_output, succeeded),
        Rule(phase, Kind.SOURCE_EXPIRED, None, "source_expired", do.ask_fresh_source, succeeded),
        Rule(phase, Kind.CANCEL, None, "cancel_requested", do.note_cancel, observable),
        Rule(phase, Kind.CANCEL, None, "final_already", Refused.NOT_CANCELLABLE),
        Rule(phase, Kind.CANCEL_ANSWERED, None, "final_already", Refused.FINAL, final),
        Rule(phase, Kind.CANCEL_ANSWERED, None, "not_asked", Refused.UNCHANGED, unasked),
        Rule(phase, Kind.CANCEL_ANSWERED, None, "cancel_taken", do.note_answer, taken),
        Rule(phase, Kind.CANCEL_ANSWERED, None, "cancel_refused", do.note_answer),
        Rule(phase, Kind.WRITE_OFF, Phase.ABANDONED, "written_off", do.write_off, listed),
        Rule(phase, Kind.WRITE_OFF, None, "still_looking", Refused.STILL_LOOKING),
        Rule(phase, Kind.REOBSERVE, None, "reobserve_requested", do.reobserve, observable),
        Rule(phase, Kind.REOBSERVE, None, "final_already", Refused.FINAL),
        Rule(phase, Kind.REDELIVER, None, "redeliver_requested", do.redeliver, succeeded),
        Rule(phase, Kind.RESUME, None, "message_resumed", do.resume_course, of_course),
        Rule(phase, Kind.RESUME, None, "message_resumed", do.resume_delivery, succeeded),
    )


_REPLIES = (Kind.ACCEPTED, Kind.FAILED_WITH_ID, Kind.REJECTED, Kind.THROTTLED, Kind.NOT_SENT, Kind.DOUBTED)

RULES: tuple[Rule, ...] = (
    # prepared: nothing is open under the present authorisation; a late id concludes it, a late "no" is only evidence
    Rule(Phase.PREPARED, Kind.MARK, None, "withdrawn", Refused.WITHDRAWN, withdrawn),
    Rule(Phase.PREPARED, Kind.MARK, Phase.DISPATCHING, "dispatch_marked", do.mark),
    Rule(Phase.PREPARED, Kind.ACCEPTED, Phase.ACCEPTED, "generation_accepted", do.conclude),
    Rule(Phase.PREPARED, Kind.FAILED_WITH_ID, Phase.SUBMISSION_FAILED, "submission_failed", do.conclude),
    *_evidence_rows(Phase.PREPARED, Kind.REJECTED, Kind.THROTTLED, Kind.NOT_SENT, Kind.DOUBTED),
    Rule(Phase.PREPARED, Kind.CANCEL, Phase.CANCELLED, "cancelled", do.close_unsent),
    Rule(Phase.PREPARED, Kind.DEADLINE_PASSED, Phase.CANCELLED, "deadline_passed", do.close_unsent),
    Rule(Phase.PREPARED, Kind.RESUME, None, "message_resumed", do.resume_course),
    # dispatching: the mark is committed, so the request may be on its way
    *_reply_rows(Phase.DISPATCHING),
    Rule(Phase.DISPATCHING, Kind.DOUBTED, Phase.UNCERTAIN, "became_uncertain", do.conclude),
    Rule(Phase.DISPATCHING, Kind.LEASE_ENDED, Phase.UNCERTAIN, "became_uncertain", do.doubt),
    Rule(Phase.DISPATCHING, Kind.CANCEL, None, "cancel_requested", do.note_cancel),
    Rule(Phase.DISPATCHING, Kind.RESUME, None, "message_resumed", do.resume_course),
    # uncertain: only a late reply or a person's decision leads out, never time, lease, count or restart
    *_reply_rows(Phase.UNCERTAIN),
    *_evidence_rows(Phase.UNCERTAIN, Kind.DOUBTED),
    Rule(Phase.UNCERTAIN, Kind.CANCEL, None, "cancel_requested", do.note_cancel),
    Rule(Phase.UNCERTAIN, Kind.ADOPT, Phase.ACCEPTED, "adopted", do.adopt),
    Rule(Phase.UNCERTAIN, Kind.PROVE_ABSENT, None, "too_early", Refused.NOT_QUIESCENT, early),
    Rule(Phase.UNCERTAIN, Kind.PROVE_ABSENT, Phase.PREPARED, "proven_absent", do.prove_absent),
    Rule(Phase.UNCERTAIN, Kind.REDISPATCH, None, "too_early", Refused.NOT_QUIESCENT, early),
    Rule(Phase.UNCERTAIN, Kind.REDISPATCH, Phase.PREPARED, "redispatch_authorised", do.redispatch),
    Rule(Phase.UNCERTAIN, Kind.REQUEST_REDISPATCH, None, "too_early", Refused.NOT_QUIESCENT, early),
    Rule(Phase.UNCERTAIN, Kind.REQUEST_REDISPATCH, None, "redispatch_requested", do.request_redispatch),
    Rule(Phase.UNCERTAIN, Kind.WRITE_OFF, None, "too_early", Refused.NOT_QUIESCENT, released_early),
    Rule(Phase.UNCERTAIN, Kind.WRITE_OFF, Phase.ABANDONED, "written_off", do.write_off),
    # the remote job is known
    *_known_job_rows(Phase.ACCEPTED),
    *_known_job_rows(Phase.SUBMISSION_FAILED),
    # rejected, cancelled, abandoned: closed; what comes late is evidence, and an id among it an orphan
    *_evidence_rows(Phase.REJECTED, *_REPLIES),
    Rule(Phase.REJECTED, Kind.REDISPATCH, None, "too_early", Refused.NOT_QUIESCENT, early),
    Rule(Phase.REJECTED, Kind.REDISPATCH, Phase.PREPARED, "redispatch_authorised", do.redispatch),
    Rule(Phase.REJECTED, Kind.REQUEST_REDISPATCH, None, "too_early", Refused.NOT_QUIESCENT, early),
    Rule(Phase.REJECTED, Kind.REQUEST_REDISPATCH, None, "redispatch_requested", do.request_redispatch),
    *_evidence_rows(Phase.CANCELLED, *_REPLIES),
    *_evidence_rows(Phase.ABANDONED, *_REPLIES),
    # what a person found out is kept in every phase
    *(Rule(phase, Kind.NOTE, None, "noted", do.note) for phase in Phase),
)

_BY_PAIR: dict[tuple[Phase, Kind], tuple[Rule, ...]] = {
    pair: tuple(rule for rule in RULES if (rule.phase, rule.kind) == pair)
    for pair in {(rule.phase, rule.kind) for rule in RULES}
}


NEEDED: Mapping[Refused, str] = {
    Refused.UNCHANGED: "it needs news: what was said is recorded already, or its time is not over",
    Refused.WITHDRAWN: "it needs a new authorisation: this one was cancelled, or its deadline passed",
    Refused.WRONG_ID: "it needs the remote job that the operation owns",
    Refused.REGRESSED: "it needs the final state that is recorded: a final render says nothing else any more",
    Refused.NOT_QUIESCENT: "it needs the instant after which nothing of the last dispatch can arrive: quiescent_at",
    Refused.NOT_CANCELLABLE: "it needs a render that is not final",
    Refused.FINAL: "it needs a render that is not final",
    Refused.STILL_LOOKING: "it needs a render that observing has given up: stalled or missing",
    Refused.NOT_IN_TABLE: "it needs another phase, or a render that succeeded",
}
"""What would be needed for the event to mean something."""


def advance(operation: Operation, event: ev.Event, now: datetime) -> Step | Refusal:
    """What `event` means for `operation` at `now` (the database's clock): the step to save, or why nothing changes.

    Example: `advance(operation, LeaseEnded(), operation.read_at)`.
    """
    for rule in _BY_PAIR.get((operation.phase, event.kind), ()):
        if rule.when is None or rule.when(operation, event, now):
            if isinstance(rule.do, Refused):
                return Refusal(
                    code=rule.do, detail=f"{rule.name}: {event.kind} in {operation.phase}; {NEEDED[rule.do]}"
                )
            return rule.do(do.Setting(operation=operation, now=now, event=rule.name, to=rule.to), event)
    return Refusal(code=Refused.NOT_IN_TABLE, detail=_expected_phase(operation, event))


def _expected_phase(operation: Operation, event: ev.Event) -> str:
    if (operation.phase, event.kind) in _BY_PAIR:
        return f"{event.kind} does not apply to a render that is {operation.render_state}; it needs one that succeeded"
    phases = " or ".join(phase for phase in Phase if (phase, event.kind) in _BY_PAIR)
    return f"{event.kind} does not apply in {operation.phase}; it needs {phases}"
