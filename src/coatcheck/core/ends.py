"""What the end of a POST says by itself, whatever has become of its operation."""

from typing import assert_never

from coatcheck.core import events as ev
from coatcheck.core.actions import LaneChange
from coatcheck.core.operation import OperationId, Outcome, Phase, RemoteJobId
from coatcheck.core.steps import ConcludeStep


def evidence_of(operation_id: OperationId, event: ev.Reply) -> ConcludeStep:
    """Write it down and conclude nothing: all that is left to do where the operation is gone."""
    return end_of(operation_id, event, name=f"late_{event.kind}", phase=None, withdrawn=False, lanes=())


def end_of(
    operation_id: OperationId,
    event: ev.Reply,
    *,
    name: str,
    phase: Phase | None,
    withdrawn: bool,
    lanes: tuple[LaneChange, ...],
) -> ConcludeStep:
    """Write it down under the `name` that history gives it, and conclude what is told: `phase` None is evidence alone."""
    outcome, remote_job_id, cause = _grounds(event)
    return ConcludeStep(
        operation_id=operation_id,
        dispatch_id=event.dispatch_id,
        event=name,
        outcome=outcome,
        phase=phase,
        withdrawn=withdrawn,
        cause=cause,
        remote_job_id=remote_job_id,
        candidate_id=event.candidate if isinstance(event, ev.Doubted) else None,
        observe_for_s=event.observe_for_s if isinstance(event, ev.Accepted | ev.FailedWithId) else None,
        lanes=lanes,
    )


def _grounds(event: ev.Reply) -> tuple[Outcome, RemoteJobId | None, str | None]:
    match event:
        case ev.Accepted():
            return Outcome.ACCEPTED, event.remote_job_id, None
        case ev.FailedWithId():
            return Outcome.SUBMISSION_FAILED, event.remote_job_id, None
        case ev.Rejected():
            return Outcome.REJECTED, None, f"status_{event.status}"
        case ev.Throttled():
            return Outcome.THROTTLED, None, None
        case ev.NotSent():
            return Outcome.NOT_SENT, None, event.cause
        case ev.Doubted():
            return Outcome.UNCERTAIN, None, event.cause
        case _:
            assert_never(event)
