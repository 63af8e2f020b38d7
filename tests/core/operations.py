"""Builders of operations and events for the tests of the table: each is valid, and a test names only what it is about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.events import EventKind
from coatcheck.core.operation import (
    CancelAnswer,
    DeliveryState,
    DispatchId,
    Operation,
    OperationId,
    Phase,
    RemoteJobId,
    RenderState,
    TenantId,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OPERATION = OperationId(UUID(int=1))
DISPATCH = DispatchId(UUID(int=2))
JOB = RemoteJobId("job-1")
OTHER_JOB = RemoteJobId("job-2")
OUTPUT = ev.Output(index=0, url="https://service.example/out/0")

PREPARED = Operation(
    operation_id=OPERATION,
    tenant_id=TenantId("tenant"),
    operation_key="key",
    provider="genace",
    account=None,
    specification_hash="00" * 32,
    phase=Phase.PREPARED,
    authorisation=1,
    authorised_by="application",
    dispatch_id=None,
    dispatch_count=0,
    render_state=RenderState.NONE,
    remote_status=None,
    delivery_state=DeliveryState.NOT_STARTED,
    output_count=0,
    delivered_count=0,
    failed_count=0,
    remote_job_id=None,
    revision=0,
    estimate=None,
    unit="credits",
    priority=0,
    not_before_at=None,
    dispatch_by_at=None,
    observe_by_at=None,
    cancel_requested_at=None,
    accepted_at=None,
    final_at=None,
    created_at=NOW - timedelta(minutes=5),
    updated_at=NOW,
    read_at=NOW,
)


def operation_in(phase: Phase, **changes: object) -> Operation:
    """An operation as it stands in `phase`."""
    sent = phase not in (Phase.PREPARED, Phase.CANCELLED)
    known = phase in (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)
    standing = replace(
        PREPARED,
        phase=phase,
        revision=3,
        account="genace" if sent else None,
        dispatch_id=DISPATCH if sent else None,
        dispatch_count=1 if sent else 0,
        remote_job_id=JOB if known else None,
        accepted_at=NOW - timedelta(minutes=4) if known else None,
    )
    return replace(standing, **changes)  # type: ignore[arg-type] # the changes are checked by whoever names them


def succeeded(phase: Phase = Phase.ACCEPTED) -> Operation:
    """An operation whose render succeeded with one output that is not delivered yet."""
    return operation_in(
        phase,
        render_state=RenderState.SUCCEEDED,
        remote_status="succeeded",
        delivery_state=DeliveryState.PENDING,
        output_count=1,
        final_at=NOW,
    )


def snapshot(state: RenderState | None = RenderState.RENDERING, **changes: object) -> ev.Snapshot:
    """A look at the operation's own job."""
    base = ev.Snapshot(remote_job_id=JOB, remote_status=str(state or "novel"), render_state=state)
    return replace(base, **changes)  # type: ignore[arg-type] # the changes are checked by whoever names them


EVENTS: dict[EventKind, ev.Event] = {
    EventKind.MARK: ev.Mark(dispatch_id=DISPATCH, account="genace"),
    EventKind.ACCEPTED: ev.Accepted(dispatch_id=DISPATCH, remote_job_id=JOB),
    EventKind.FAILED_WITH_ID: ev.FailedWithId(dispatch_id=DISPATCH, remote_job_id=JOB),
    EventKind.REJECTED: ev.Rejected(dispatch_id=DISPATCH, status=422),
    EventKind.THROTTLED: ev.Throttled(dispatch_id=DISPATCH, retry_after_s=1.0),
    EventKind.NOT_SENT: ev.NotSent(dispatch_id=DISPATCH, cause="refused"),
    EventKind.DOUBTED: ev.Doubted(dispatch_id=DISPATCH, cause="closed"),
    EventKind.LEASE_ENDED: ev.LeaseEnded(),
    EventKind.REPEATED: ev.Repeated(actor="worker-1"),
    EventKind.SNAPSHOT: snapshot(),
    EventKind.NOT_FOUND: ev.NotFound(grace_s=60),
    EventKind.STALLED: ev.Stalled(),
    EventKind.OUTPUT_STORED: ev.OutputStored(
        index=0, uri="file:///x", sha256="00" * 32, bytes=1, sniffed_type="image/png"
    ),
    EventKind.OUTPUT_FAILED: ev.OutputFailed(index=0, cause="cut_short"),
    EventKind.SOURCE_EXPIRED: ev.SourceExpired(index=0, delay_s=1),
    EventKind.CANCEL: ev.Cancel(actor="ann", reason="changed her mind"),
    EventKind.DEADLINE_PASSED: ev.DeadlinePassed(),
    EventKind.ADOPT: ev.Adopt(actor="ann", reason="found it", remote_job_id=JOB),
    EventKind.PROVE_ABSENT: ev.ProveAbsent(actor="ann", reason="listed", quiescent_at=NOW),
    EventKind.REDISPATCH: ev.Redispatch(actor="ann", reason="needed", quiescent_at=NOW),
    EventKind.REQUEST_REDISPATCH: ev.RequestRedispatch(actor="ann", reason="needed", quiescent_at=NOW),
    EventKind.WRITE_OFF: ev.WriteOff(actor="ann", reason="late"),
    EventKind.CANCEL_ANSWERED: ev.CancelAnswered(actor="worker-1", answer=CancelAnswer.TAKEN, status=202),
    EventKind.REOBSERVE: ev.Reobserve(actor="ann", reason="again"),
    EventKind.REDELIVER: ev.Redeliver(actor="ann", reason="again", indexes=(0,)),
    EventKind.NOTE: ev.Note(actor="ann", reason="the service says that it is ours"),
    EventKind.RESUME: ev.Resume(actor="ann", reason="mended", lane=0, park_reason="lease_count"),
}
