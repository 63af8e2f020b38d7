"""The real table of `core.machine`, asked about a world's rows; answers are remembered, for the same few rows come up again and again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.machine import advance
from coatcheck.core.operation import (
    DeliveryState,
    DispatchId,
    Operation,
    OperationId,
    Phase,
    RemoteJobId,
    RenderState,
    TenantId,
)
from coatcheck.core.steps import Refusal, Step
from model.world import Row

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Asked = Callable[[Row, ev.Event], Step | Refusal]


def asked(row: Row, event: ev.Event) -> Step | Refusal:
    """What the table says of an event. Steps name revision 0, whatever was read: the store is told whether that was fresh."""
    return advance(operation_of(row), event, NOW)


def remembered(table: Asked) -> Asked:
    """The same answers, faster."""
    return cache(table)


def dispatch_id(number: int) -> DispatchId:
    return DispatchId(UUID(int=number + 1))


def job_id(number: int) -> RemoteJobId:
    return RemoteJobId(f"job {number}")


def number_of(job: RemoteJobId | None) -> int | None:
    """The number of the dispatch whose POST created the job."""
    return None if job is None else int(job.removeprefix("job "))


def operation_of(row: Row) -> Operation:
    """The row as the value that the table decides on."""
    known = row.job is not None
    return Operation(
        operation_id=OperationId(UUID(int=1)),
        tenant_id=TenantId("ada"),
        operation_key="key",
        provider="genace",
        account="genace" if row.dispatch is not None else None,
        specification_hash="0" * 64,
        phase=row.phase,
        authorisation=row.authorisation,
        authorised_by="ada",
        dispatch_id=None if row.dispatch is None else dispatch_id(row.dispatch),
        dispatch_count=0 if row.dispatch is None else row.dispatch + 1,
        render_state=row.render_state,
        remote_status=None if row.render_state is RenderState.NONE else row.render_state,
        delivery_state=DeliveryState.NOT_STARTED,
        output_count=0,
        delivered_count=0,
        failed_count=0,
        remote_job_id=job_id(row.job) if row.job is not None else None,
        revision=0,
        estimate=Decimal(1),
        unit="credits",
        priority=0,
        not_before_at=None,
        dispatch_by_at=None,
        observe_by_at=NOW + timedelta(days=1) if known else None,
        cancel_requested_at=NOW if row.is_withdrawn else None,
        accepted_at=NOW if known else None,
        final_at=NOW if row.render_state is RenderState.SUCCEEDED else None,
        created_at=NOW,
        updated_at=NOW,
        read_at=NOW,
    )


def reply(kind: Kind, dispatch: int) -> ev.Reply:
    """How a POST ended. An id in it is that of the job which this very POST created."""
    mine = dispatch_id(dispatch)
    match kind:
        case Kind.ACCEPTED:
            return ev.Accepted(dispatch_id=mine, remote_job_id=job_id(dispatch))
        case Kind.FAILED_WITH_ID:
            return ev.FailedWithId(dispatch_id=mine, remote_job_id=job_id(dispatch))
        case Kind.REJECTED:
            return ev.Rejected(dispatch_id=mine, status=422)
        case Kind.THROTTLED:
            return ev.Throttled(dispatch_id=mine, retry_after_s=None)
        case Kind.NOT_SENT:
            return ev.NotSent(dispatch_id=mine, cause="refused")
        case Kind.DOUBTED:
            return ev.Doubted(dispatch_id=mine, cause="reply_lost")
        case _:
            raise AssertionError(f"expected the end of a POST, got {kind}")


def look(job: int, render_state: RenderState) -> ev.Snapshot:
    """What a look at a job brings."""
    outputs = (ev.Output(index=0, url="http://service/output"),) if render_state is RenderState.SUCCEEDED else ()
    return ev.Snapshot(
        remote_job_id=job_id(job), remote_status=render_state, render_state=render_state, outputs=outputs
    )


def decision(kind: Kind, row: Row, *, is_quiescent: bool, job: int | None = None) -> ev.Event:
    """What a person decides, told until when a worker could still send."""
    actor, reason = "eve", "the model"
    quiescent_at = NOW if is_quiescent else NOW + timedelta(seconds=1)
    match kind:
        case Kind.CANCEL:
            return ev.Cancel(actor=actor, reason=reason)
        case Kind.ADOPT:
            assert job is not None
            return ev.Adopt(remote_job_id=job_id(job), actor=actor, reason=reason)
        case Kind.PROVE_ABSENT:
            return ev.ProveAbsent(quiescent_at=quiescent_at, actor=actor, reason=reason)
        case Kind.REDISPATCH:
            return ev.Redispatch(
                quiescent_at=quiescent_at if row.phase is Phase.UNCERTAIN else None, actor=actor, reason=reason
            )
        case Kind.WRITE_OFF:
            return ev.WriteOff(actor=actor, reason=reason)
        case _:
            raise AssertionError(f"expected a person's decision, got {kind}")
