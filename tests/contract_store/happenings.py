"""What may happen to an operation: any event in any phase, more often one that fits, for the stores must agree on nonsense, too."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from coatcheck.core import events as ev
from coatcheck.core.operation import CancelAnswer, DispatchId, Operation, Phase, RemoteJobId, RenderState
from contract_store.chances import JOBS, Chances

Maker = Callable[[Chances, Operation], ev.Event]
_STATES = (*RenderState, *(RenderState.SUCCEEDED,) * 8, RenderState.RENDERING, None)


def event(chances: Chances, operation: Operation) -> ev.Event:
    """The next event of an operation."""
    fitting = _FITTING.get(operation.phase, ())
    if operation.render_state is RenderState.SUCCEEDED and operation.output_count and chances.one_in(2):
        fitting = _DUE
    return chances.pick(fitting if fitting and not chances.one_in(5) else _ALL)(chances, operation)


def _dispatch_id(chances: Chances, operation: Operation) -> DispatchId:
    """The present dispatch, now and then an earlier one, or one whose row is gone."""
    if operation.dispatch_id is not None and not chances.one_in(5):
        return operation.dispatch_id
    known = [row["dispatch_id"] for row in chances.dispatches(operation)]
    return DispatchId(chances.pick(known)) if known else chances.dispatch_id()


def _job(chances: Chances, operation: Operation) -> RemoteJobId:
    """A job of its own, now and then anybody's, or one that it was too late for before."""
    orphans = [
        row["remote_job_id"] for row in chances.tables.remote_jobs if row["operation_id"] == operation.operation_id
    ]
    if orphans and chances.one_in(3):
        return RemoteJobId(chances.pick(orphans))
    if chances.one_in(3):
        return RemoteJobId(chances.pick([*JOBS[:2], *(row["remote_job_id"] for row in chances.tables.remote_jobs)]))
    return operation.remote_job_id or RemoteJobId(f"job-of-{operation.operation_id.int}-{operation.authorisation}")


def _accepted(chances: Chances, operation: Operation) -> ev.Event:
    return ev.Accepted(
        dispatch_id=_dispatch_id(chances, operation),
        remote_job_id=_job(chances, operation),
        observe_for_s=chances.pick((60.0, 3600.0)),
    )


def _failed_with_id(chances: Chances, operation: Operation) -> ev.Event:
    return ev.FailedWithId(dispatch_id=_dispatch_id(chances, operation), remote_job_id=_job(chances, operation))


def _rejected(chances: Chances, operation: Operation) -> ev.Event:
    return ev.Rejected(dispatch_id=_dispatch_id(chances, operation), status=chances.pick((400, 401, 402, 403)))


def _throttled(chances: Chances, operation: Operation) -> ev.Event:
    dispatch_id = _dispatch_id(chances, operation)
    return ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None, delay_s=chances.seconds(0.5, 5))


def _not_sent(chances: Chances, operation: Operation) -> ev.Event:
    dispatch_id = _dispatch_id(chances, operation)
    return ev.NotSent(dispatch_id=dispatch_id, cause="refused", delay_s=chances.seconds(0.5, 5))


def _doubted(chances: Chances, operation: Operation) -> ev.Event:
    return ev.Doubted(
        dispatch_id=_dispatch_id(chances, operation),
        cause=chances.pick(("reset", "timeout")),
        looked_up=chances.one_in(2),
        candidate=chances.pick((None, *JOBS[:2])),
    )


def marking(chances: Chances, operation: Operation) -> ev.Event:
    """A mark under a fresh dispatch, mostly on the operation's own account."""
    accounts = ("other",) if operation.provider == "other" else ("genace", "genace", "genace", "other")
    return ev.Mark(dispatch_id=chances.dispatch_id(), account=chances.pick(accounts))


def _lease_ended(chances: Chances, operation: Operation) -> ev.Event:
    return ev.LeaseEnded(looked_up=chances.one_in(2))


def _repeated(chances: Chances, operation: Operation) -> ev.Event:
    return ev.Repeated(actor="w1")


def _waited(chances: Chances, operation: Operation) -> ev.Waited:
    course = chances.tables.outbox.get((operation.operation_id, 0))
    if course is None:
        return ev.Waited()
    return ev.Waited(reason=course["wait_reason"], since_at=course["wait_since_at"], count=course["wait_count"])


def _snapshot(chances: Chances, operation: Operation) -> ev.Event:
    state = operation.render_state if operation.is_final else chances.pick(_STATES)
    host = chances.pick(("a", "b"))
    count = operation.output_count if operation.is_final else chances.random.randrange(3)
    outputs = tuple(ev.Output(index=at, url=f"http://{host}/{at}", content_type="image/png") for at in range(count))
    outputs = outputs if state is RenderState.SUCCEEDED else ()
    credit = ev.Credits(
        charged=Decimal(chances.pick(("0", "1", "2.5", "7"))),
        refunded=Decimal(chances.pick(("0", "0", "3"))),
        unit=chances.pick((None, "credits", "credits", "tokens")),
    )
    return ev.Snapshot(
        remote_job_id=operation.remote_job_id or chances.pick(JOBS),
        remote_status=operation.remote_status or "?" if operation.is_final else str(state),
        render_state=state,
        outputs=outputs,
        error_code=chances.pick((None, None, "moderation")),
        credits=chances.pick((None, credit)),
        waited=_waited(chances, operation),
        stored_urls=tuple(
            (row["output_index"], row["source"]) for row in chances.tables.deliveries.of(operation.operation_id)
        ),
        delay_s=chances.seconds(1, 10),
    )


def _not_found(chances: Chances, operation: Operation) -> ev.Event:
    return ev.NotFound(
        grace_s=chances.pick((0.0, 5.0, 60.0)), waited=_waited(chances, operation), delay_s=chances.seconds(2)
    )


def _stalled(chances: Chances, operation: Operation) -> ev.Event:
    return ev.Stalled()


def _index(chances: Chances, operation: Operation) -> int:
    return chances.random.randrange(max(1, operation.output_count))


def _output_stored(chances: Chances, operation: Operation) -> ev.Event:
    index = _index(chances, operation)
    return ev.OutputStored(index=index, uri=f"file:///{index}", sha256="ab" * 32, bytes=7, sniffed_type="image/png")


def _output_failed(chances: Chances, operation: Operation) -> ev.Event:
    return ev.OutputFailed(index=_index(chances, operation), cause="too_large")


def _source_expired(chances: Chances, operation: Operation) -> ev.Event:
    return ev.SourceExpired(index=_index(chances, operation), delay_s=chances.seconds(1, 5))


def _cancel_answered(chances: Chances, operation: Operation) -> ev.Event:
    return ev.CancelAnswered(actor="w2", answer=chances.pick(tuple(CancelAnswer)), status=202)


def _quiescent(chances: Chances, operation: Operation) -> ev.Event:
    """A decision that a paused worker could still cross."""
    made = chances.tables.dispatches.get(operation.dispatch_id)
    by: dict[str, Any] = {"actor": "ops", "reason": chances.pick(("seen", "asked"))}
    if made is None:
        return ev.Redispatch(quiescent_at=None, **by)
    at = made["quiescent_at"]
    decisions: Sequence[ev.Event] = (
        ev.ProveAbsent(quiescent_at=at, **by),
        ev.Redispatch(quiescent_at=at, **by),
        ev.RequestRedispatch(quiescent_at=at, **by),
        ev.WriteOff(stalled=True, released=chances.one_in(2), quiescent_at=at, **by),
    )
    return chances.pick(decisions)


def _decision(chances: Chances, operation: Operation) -> ev.Event:
    """What a person may say at any time."""
    by: dict[str, Any] = {"actor": "ops", "reason": "said so"}
    lane = chances.random.randrange(1 + max(1, operation.output_count))
    course = chances.tables.outbox.get((operation.operation_id, lane))
    park_reason = (course and course["park_reason"]) or "lease_count"
    indexes = tuple(range(operation.output_count))
    decisions: Sequence[ev.Event] = (
        ev.Cancel(**by),
        ev.Adopt(remote_job_id=_job(chances, operation), **by),
        ev.WriteOff(stalled=chances.one_in(2), **by),
        ev.Reobserve(observe_for_s=600.0, **by),
        ev.Redeliver(indexes=tuple(chances.some(indexes, 2)), **by),
        ev.Resume(lane=lane, park_reason=park_reason, **by),
        ev.Note(**by),
    )
    return chances.pick(decisions)


def _adopt(chances: Chances, operation: Operation) -> ev.Event:
    """An id, also one that a late reply left as an orphan of this operation."""
    orphans = [
        row["remote_job_id"] for row in chances.tables.remote_jobs if row["operation_id"] == operation.operation_id
    ]
    known = orphans if orphans and chances.one_in(2) else [row["remote_job_id"] for row in chances.tables.remote_jobs]
    job = RemoteJobId(chances.pick(known)) if known and chances.one_in(2) else _job(chances, operation)
    return ev.Adopt(remote_job_id=job, actor="ops", reason="found")


def _deadline(chances: Chances, operation: Operation) -> ev.Event:
    return ev.DeadlinePassed()


_REPLIES: Sequence[Maker] = (
    _accepted,
    _accepted,
    _failed_with_id,
    _rejected,
    _throttled,
    _not_sent,
    _doubted,
    _doubted,
)
_ALL: Sequence[Maker] = (
    *_REPLIES,
    *(marking, _lease_ended, _repeated, _snapshot, _not_found, _stalled, _output_stored, _output_failed),
    *(_source_expired, _cancel_answered, _quiescent, _decision, _adopt, _deadline),
)
_KNOWN: Sequence[Maker] = (
    *(_snapshot,) * 5,
    *(
        _output_stored,
        _output_stored,
        _output_failed,
        _source_expired,
        _not_found,
        _stalled,
        _decision,
        _cancel_answered,
    ),
    *(_accepted, _doubted),
)
_DUE: Sequence[Maker] = (_output_stored, _output_stored, _output_failed, _source_expired, _decision)
_FITTING: Mapping[Phase, Sequence[Maker]] = {
    Phase.PREPARED: (*(marking,) * 2, _accepted, _doubted, _decision, _deadline),
    Phase.DISPATCHING: (*_REPLIES, *_REPLIES, _lease_ended, _decision),
    Phase.UNCERTAIN: (*_REPLIES, *(_adopt,) * 5, _quiescent, _quiescent, _quiescent, _decision),
    Phase.REJECTED: (_accepted, _quiescent, _quiescent, _decision),
    Phase.ACCEPTED: _KNOWN,
    Phase.SUBMISSION_FAILED: _KNOWN,
}
