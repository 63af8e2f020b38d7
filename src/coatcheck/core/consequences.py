"""Builds the step that a rule of `machine` names. Each function answers "what is written, and what is due next"; none decides whether."""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from coatcheck.core import events as ev
from coatcheck.core.actions import (
    COURSE,
    Action,
    Aim,
    Drop,
    DropAll,
    LaneChange,
    Look,
    Park,
    ParkReason,
    WaitReason,
    delivery_lane,
)
from coatcheck.core.ends import end_of
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import (
    FINAL_RENDER_STATES,
    Operation,
    Outcome,
    Phase,
    RenderState,
)
from coatcheck.core.steps import (
    Boundary,
    ConcludeStep,
    DecideStep,
    DeliverStep,
    Delivery,
    Incident,
    MarkStep,
    Settlement,
    SnapshotStep,
)

SWEEP = "sweep"
"""The actor of a conclusion that no person made and no reply brought."""
LOOKUP_DELAY_S = 1.0
"""Before a service that repeats our reference is asked for it: a reply that was lost is often ahead of the job."""


@frozen
class Setting:
    """Where a rule applies: the operation as read, the database's time, and the row of the table that was chosen."""

    operation: Operation
    now: datetime
    event: str
    to: Phase | None


# -- the POST ----------------------------------------------------------------------------------------------------------


def mark(at: Setting, event: ev.Mark) -> MarkStep:
    """Write the mark."""
    return MarkStep(
        operation_id=at.operation.operation_id,
        revision=at.operation.revision,
        dispatch_id=event.dispatch_id,
        account=event.account,
    )


def conclude(at: Setting, event: ev.Reply) -> ConcludeStep:
    """Write the end of the POST and what it makes due."""
    return end_of(
        at.operation.operation_id,
        event,
        name=at.event,
        phase=at.to,
        withdrawn=at.operation.is_withdrawn,
        lanes=_after_post(at.to, event),
    )


def _after_post(to: Phase | None, event: ev.Reply) -> tuple[LaneChange, ...]:
    match to:
        case Phase.ACCEPTED | Phase.SUBMISSION_FAILED:
            return (Aim(lane=COURSE, action=Action.OBSERVE),)
        case Phase.PREPARED:
            throttled = isinstance(event, ev.Throttled)
            delay_s = event.delay_s if isinstance(event, ev.Throttled | ev.NotSent) else 0.0
            reason = WaitReason.THROTTLED if throttled else WaitReason.NOT_SENT
            return (Aim(lane=COURSE, action=Action.DISPATCH, delay_s=delay_s, wait_reason=reason),)
        case Phase.UNCERTAIN:
            return (_in_doubt(looked_up=isinstance(event, ev.Doubted) and event.looked_up),)
        case Phase.REJECTED | Phase.CANCELLED:
            return (DropAll(),)
        case None | Phase.DISPATCHING | Phase.ABANDONED:
            # evidence alone makes nothing due, and no reply leads into the other two
            return ()
        case _:
            assert_never(to)


def _in_doubt(*, looked_up: bool) -> LaneChange:
    """Doubt is a person's at once, unless the service can be asked what it created."""
    if not looked_up:
        return Park(lane=COURSE, action=Action.RECONCILE, reason=ParkReason.UNCERTAIN)
    return Aim(lane=COURSE, action=Action.RECONCILE, delay_s=LOOKUP_DELAY_S, wait_reason=WaitReason.LOOKUP)


# -- looks -------------------------------------------------------------------------------------------------------------


def _look(
    at: Setting,
    event: ev.Snapshot,
    render_state: RenderState,
    lanes: tuple[LaneChange, ...],
    *,
    outputs: tuple[ev.Output, ...] = (),
    error_code: str | None = None,
    incident: Incident | None = None,
) -> SnapshotStep:
    return SnapshotStep(
        operation_id=at.operation.operation_id,
        revision=at.operation.revision,
        remote_job_id=event.remote_job_id,
        event=at.event,
        remote_status=event.remote_status,
        render_state=render_state,
        settles=render_state in FINAL_RENDER_STATES,
        outputs=outputs,
        error_code=error_code if error_code is not None else event.error_code,
        credits=event.credits,
        lanes=lanes,
        incident=incident,
    )


def progress(at: Setting, event: ev.Snapshot) -> SnapshotStep:
    """The service says something new and not final. A word never seen before keeps our last state and raises an alarm."""
    known = event.render_state
    previous = at.operation.render_state
    unknown = known is None
    state = known or (RenderState.RENDERING if previous is RenderState.MISSING else previous)
    return _look(
        at,
        event,
        state,
        (Aim(lane=COURSE, action=Action.OBSERVE, delay_s=event.delay_s, wait_reason=WaitReason.ACTIVE),),
        incident=Incident(kind="unknown_status", boundary=Boundary.THEIRS, detail=event.remote_status)
        if unknown
        else None,
    )


def await_output(at: Setting, event: ev.Snapshot) -> SnapshotStep:
    """A success word without usable output: still rendering, for a while."""
    aim = Aim(lane=COURSE, action=Action.OBSERVE, delay_s=event.delay_s, wait_reason=WaitReason.NO_OUTPUT)
    return _look(at, event, RenderState.RENDERING, (aim,))


def fail_without_output(at: Setting, event: ev.Snapshot) -> SnapshotStep:
    """The success word never got an output: a failure of the render, and an incident of theirs."""
    incident = Incident(kind="no_output", boundary=Boundary.THEIRS, detail=event.remote_status)
    return _look(at, event, RenderState.FAILED, _accounting(at, event), error_code="no_output", incident=incident)


def finish(at: Setting, event: ev.Snapshot) -> SnapshotStep:
    """A final state: deliver what succeeded, keep looking for the accounting of what did not."""
    state = event.render_state or RenderState.FAILED
    if state is not RenderState.SUCCEEDED:
        return _look(at, event, state, _accounting(at, event))
    deliver = tuple(Aim(lane=delivery_lane(output.index), action=Action.DELIVER) for output in event.outputs)
    incident = None
    if event.unusable_count:
        detail = f"{event.unusable_count} of {event.unusable_count + len(event.outputs)} outputs cannot be fetched as described"
        incident = Incident(kind="output_unusable", boundary=Boundary.THEIRS, detail=detail)
    return _look(at, event, state, (Drop(lane=COURSE), *deliver), outputs=event.outputs, incident=incident)


def _accounting(at: Setting, event: ev.Snapshot) -> tuple[LaneChange, ...]:
    """Nothing more is owed once the service's own figure is here, in the unit that is held."""
    if event.credits is not None and event.credits.unit in (None, at.operation.unit):
        return (Drop(lane=COURSE),)
    return (Aim(lane=COURSE, action=Action.OBSERVE, delay_s=event.delay_s, wait_reason=WaitReason.ACCOUNTING),)


def refresh(at: Setting, event: ev.Snapshot) -> SnapshotStep:
    """A final operation seen again: only the sources of undelivered outputs and the money may change."""
    known = dict(event.stored_urls)
    fresh = tuple(output for output in event.outputs if known.get(output.index, output.url) != output.url)
    # the wait reason stays, so the tries of the delivery go on counting: a service that renews its URLs for ever ends parked
    deliver = tuple(
        Aim(lane=delivery_lane(output.index), action=Action.DELIVER, wait_reason=WaitReason.DELIVERY_FAILED)
        for output in fresh
    )
    owed = () if at.operation.render_state is RenderState.SUCCEEDED else _accounting(at, event)
    return _look(at, event, at.operation.render_state, (*(owed or (Drop(lane=COURSE),)), *deliver), outputs=fresh)


def miss(at: Setting, _event: ev.NotFound) -> DecideStep:
    """The service no longer knows the job: set aside for a person, the hold stays."""
    return _decide(at, RenderState.MISSING, (Park(lane=COURSE, action=Action.OBSERVE, reason=ParkReason.MISSING),))


def stall(at: Setting, _event: ev.Stalled) -> DecideStep:
    """The observation deadline passed: set aside for a person, the hold stays."""
    park = Park(lane=COURSE, action=Action.OBSERVE, reason=ParkReason.STALLED)
    return _decide(at, at.operation.render_state, (park,))


# -- delivery ----------------------------------------------------------------------------------------------------------


def store_output(at: Setting, event: ev.OutputStored) -> DeliverStep:
    """The output is safe."""
    return DeliverStep(
        operation_id=at.operation.operation_id,
        event=at.event,
        index=event.index,
        result=Delivery.STORED,
        uri=event.uri,
        sha256=event.sha256,
        bytes=event.bytes,
        sniffed_type=event.sniffed_type,
        lanes=(Drop(lane=delivery_lane(event.index)),),
    )


def fail_output(at: Setting, event: ev.OutputFailed) -> DeliverStep:
    """The tries are spent: set the lane aside; the render stays what it is."""
    lane = delivery_lane(event.index)
    return DeliverStep(
        operation_id=at.operation.operation_id,
        event=at.event,
        index=event.index,
        result=Delivery.FAILED,
        cause=event.cause,
        lanes=(Park(lane=lane, action=Action.DELIVER, reason=ParkReason.DELIVERY_FAILED),),
    )


def ask_fresh_source(at: Setting, event: ev.SourceExpired) -> DeliverStep:
    """Look for a fresh URL and try the delivery again later."""
    again = Aim(
        lane=delivery_lane(event.index),
        action=Action.DELIVER,
        delay_s=event.delay_s,
        wait_reason=WaitReason.DELIVERY_FAILED,
    )
    return DeliverStep(
        operation_id=at.operation.operation_id,
        event=at.event,
        index=event.index,
        result=Delivery.EXPIRED,
        cause="source_expired",
        lanes=(Look(), again),
    )


# -- sweeps and people -------------------------------------------------------------------------------------------------


def _decide(
    at: Setting, render_state: RenderState, lanes: tuple[LaneChange, ...], by: ev.Decided | None = None
) -> DecideStep:
    return DecideStep(
        operation_id=at.operation.operation_id,
        revision=at.operation.revision,
        event=at.event,
        phase=at.to or at.operation.phase,
        render_state=render_state,
        actor=by.actor if by else SWEEP,
        reason=by.reason if by else None,
        lanes=lanes,
    )


def doubt(at: Setting, event: ev.LeaseEnded) -> DecideStep:
    """The lease ended before a reply was saved: it may have been sent."""
    lanes = (_in_doubt(looked_up=event.looked_up),)
    return replace(_decide(at, at.operation.render_state, lanes), reason=event.cause, outcome=Outcome.UNCERTAIN)


def observe_instead(at: Setting, event: ev.Repeated) -> DecideStep:
    """The message was about a POST that has its reply: aim it at observing, and send nothing."""
    aim = Aim(lane=COURSE, action=Action.OBSERVE)
    return replace(_decide(at, at.operation.render_state, (aim,)), actor=event.actor)


def close_unsent(at: Setting, event: ev.Cancel | ev.DeadlinePassed) -> DecideStep:
    """Nothing was sent under this authorisation and nothing will be."""
    by = event if isinstance(event, ev.Cancel) else None
    return _decide(at, at.operation.render_state, (DropAll(),), by)


def note_cancel(at: Setting, event: ev.Cancel) -> DecideStep:
    """Too late to stop the POST: the wish is recorded and promises neither a stop nor a refund."""
    known = at.operation.remote_job_id is not None
    # the look that follows tells the service, where it can be told; asking again and again makes none due
    lanes: tuple[LaneChange, ...] = (Look(),) if known and at.operation.cancel_requested_at is None else ()
    return replace(_decide(at, at.operation.render_state, lanes, event), requests_cancel=True)


def note_answer(at: Setting, event: ev.CancelAnswered) -> DecideStep:
    """The service took or refused the wish to cancel; look at once what became of the job."""
    aim = Aim(lane=COURSE, action=Action.OBSERVE)
    step = _decide(at, at.operation.render_state, (aim,))
    return replace(step, actor=event.actor, reason=f"status_{event.status}", cancel_answer=event.answer)


def adopt(at: Setting, event: ev.Adopt) -> DecideStep:
    """A person named the remote job that the lost reply would have named."""
    aim = Aim(lane=COURSE, action=Action.OBSERVE)
    return replace(
        _decide(at, at.operation.render_state, (aim,), event),
        outcome=Outcome.ACCEPTED,
        remote_job_id=event.remote_job_id,
        observe_for_s=event.observe_for_s,
        clears_withdrawal=True,
    )


def prove_absent(at: Setting, event: ev.ProveAbsent) -> DecideStep:
    """The former dispatch created nothing: it costs nothing, and one more POST is authorised."""
    return replace(_authorise(at, event), outcome=Outcome.PROVEN_ABSENT, settles=Settlement.FREE)


def redispatch(at: Setting, event: ev.Redispatch) -> DecideStep:
    """Spend again: the former dispatch stays as spent, and one more POST is authorised."""
    return replace(_authorise(at, event), settles=Settlement.SPENT)


def request_redispatch(at: Setting, event: ev.RequestRedispatch) -> DecideStep:
    """Written down, and nothing else: a second person decides."""
    return _decide(at, at.operation.render_state, (), event)


def _authorise(at: Setting, by: ev.Decided) -> DecideStep:
    aim = Aim(lane=COURSE, action=Action.DISPATCH)
    return replace(_decide(at, at.operation.render_state, (aim,), by), authorises=True, clears_withdrawal=True)


def write_off(at: Setting, event: ev.WriteOff) -> DecideStep:
    """Give up on the remote job; what is held counts as spent, unless the person knows that it is not."""
    settles = Settlement.FREE if event.released else Settlement.SPENT
    return replace(_decide(at, at.operation.render_state, (DropAll(),), event), settles=settles)


def note(at: Setting, event: ev.Note) -> DecideStep:
    """Keep what a person found out: it tells whoever looks later, and the audit, that this was looked into."""
    return _decide(at, at.operation.render_state, (), event)


def reobserve(at: Setting, event: ev.Reobserve) -> DecideStep:
    """Look again, with a new observation deadline. Whoever looks right now finds the newer revision and looks once more."""
    look = Look(resumes=True)
    return replace(_decide(at, at.operation.render_state, (look,), event), observe_for_s=event.observe_for_s)


def redeliver(at: Setting, event: ev.Redeliver) -> DecideStep:
    """Try the deliveries again, with all their tries."""
    lanes = tuple(Aim(lane=delivery_lane(index), action=Action.DELIVER) for index in event.indexes)
    return replace(_decide(at, at.operation.render_state, lanes, event), redelivers=event.indexes)


def resume_course(at: Setting, event: ev.Resume) -> DecideStep:
    """Take up the course where it was set aside. A render that observing gave up gets a new deadline, or it would be given up at once."""
    match at.operation.phase:
        case Phase.PREPARED:
            change: LaneChange = Aim(lane=COURSE, action=Action.DISPATCH)
        case Phase.DISPATCHING:
            change = Aim(lane=COURSE, action=Action.RECONCILE)
        case _:
            change = Look(resumes=True)
    given_up = event.park_reason in (ParkReason.MISSING, ParkReason.STALLED)
    step = _decide(at, at.operation.render_state, (change,), event)
    return replace(step, observe_for_s=event.observe_for_s if given_up else None)


def resume_delivery(at: Setting, event: ev.Resume) -> DecideStep:
    """Try one delivery again, with all its tries."""
    aim = Aim(lane=event.lane, action=Action.DELIVER)
    return replace(_decide(at, at.operation.render_state, (aim,), event), redelivers=(event.lane - 1,))
