"""The real table of `core.machine`, asked about a world's rows; answers are remembered, for the same few rows come up again and again."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import NamedTuple, Protocol, TypedDict
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.actions import COURSE, Aim, Drop, DropAll, LaneChange, Look, Park, ParkReason
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.machine import advance
from coatcheck.core.operation import (
    FINAL_RENDER_STATES,
    DeliveryState,
    DispatchId,
    Operation,
    OperationId,
    Phase,
    RemoteJobId,
    RenderState,
    TenantId,
)
from coatcheck.core.steps import ConcludeStep, DecideStep, Refusal, SnapshotStep, Step
from model.world import Deadline, Lane, Row

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = NOW + timedelta(days=1)


class About(NamedTuple):
    """Of what an event tells: the dispatch that ended, the job and state that a reply or look names, whether all is quiet, why a lane is parked."""

    dispatch: int | None = None
    job: int | None = None
    state: RenderState | None = None
    is_quiet: bool = False
    parked: ParkReason | None = None


class Answer(NamedTuple):
    """A step and what it makes of lane 0: `aim` is the lane, None if it is gone; `keeps` it, or only `looks` again, resuming it or not."""

    step: Step | Refusal
    job: int | None
    aim: Lane | None
    keeps: bool
    looks: bool
    resumes: bool


class Asked(Protocol):
    """What the table says of an event. Steps name revision 0, whatever was read: the store is told whether that was fresh."""

    def __call__(self, row: Row, kind: Kind, about: About = ..., /) -> Answer:
        """Ask."""


def asked(row: Row, kind: Kind, about: About = About(), /) -> Answer:  # noqa: B008 - a value like any other
    """Ask the real table."""
    return answer(advance(operation_of(row), event_of(row, kind, about), NOW))


def remembered(table: Asked) -> Asked:
    """The same answers, faster."""
    return cache(table)


def answer(step: Step | Refusal) -> Answer:
    """The step with what matters of it read out."""
    job = step.remote_job_id if isinstance(step, ConcludeStep | DecideStep | SnapshotStep) else None
    told = Answer(step=step, job=number_of(job), aim=None, keeps=True, looks=False, resumes=False)
    for change in getattr(step, "lanes", ()):
        told = _changed(told, change)
    return told


def _changed(told: Answer, change: LaneChange) -> Answer:
    """What the step says about lane 0; others are of no concern here."""
    match change:
        case Aim(lane=lane, action=action) if lane == COURSE:
            return told._replace(aim=Lane(action), keeps=False)
        case Park(lane=lane, action=action, reason=reason) if lane == COURSE:
            return told._replace(aim=Lane(action, parked=reason), keeps=False)
        case DropAll():
            return told._replace(aim=None, keeps=False)
        case Drop(lane=lane) if lane == COURSE:
            return told._replace(aim=None, keeps=False)
        case Look(resumes=resumes):
            return told._replace(looks=True, resumes=resumes)
        case _:
            return told


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
        dispatch_by_at={Deadline.NONE: None, Deadline.AHEAD: NEVER, Deadline.PASSED: NOW}[row.deadline],
        observe_by_at=NEVER if known else None,
        cancel_requested_at=NOW if row.is_cancel_requested else None,
        accepted_at=NOW if known else None,
        final_at=NOW if row.render_state in FINAL_RENDER_STATES else None,
        created_at=NOW,
        updated_at=NOW,
        read_at=NOW,
    )


def event_of(row: Row, kind: Kind, about: About) -> ev.Event:
    """The event itself."""
    if about.dispatch is not None:
        return _of_dispatch(kind, dispatch_id(about.dispatch), about.job)
    if about.state is not None:
        assert about.job is not None
        return _look(about.job, about.state)
    return _decided(kind, row, about)


def _of_dispatch(kind: Kind, mine: DispatchId, job: int | None) -> ev.Event:
    """A mark, or how its POST ended."""
    if kind in (Kind.ACCEPTED, Kind.FAILED_WITH_ID):
        assert job is not None
        named = ev.Accepted if kind is Kind.ACCEPTED else ev.FailedWithId
        return named(dispatch_id=mine, remote_job_id=job_id(job))
    ends: Mapping[Kind, ev.Event] = {
        Kind.MARK: ev.Mark(dispatch_id=mine, account="genace"),
        Kind.REJECTED: ev.Rejected(dispatch_id=mine, status=422),
        Kind.THROTTLED: ev.Throttled(dispatch_id=mine, retry_after_s=None),
        Kind.NOT_SENT: ev.NotSent(dispatch_id=mine, cause="refused"),
        Kind.DOUBTED: ev.Doubted(dispatch_id=mine, cause="reply_lost"),
    }
    return ends[kind]


def _look(job: int, state: RenderState) -> ev.Event:
    """What a look at a job brings."""
    if state is RenderState.MISSING:
        return ev.NotFound(grace_s=0.0)
    outputs = (ev.Output(index=0, url="http://service/output"),) if state is RenderState.SUCCEEDED else ()
    return ev.Snapshot(remote_job_id=job_id(job), remote_status=state, render_state=state, outputs=outputs)


def _decided(kind: Kind, row: Row, about: About) -> ev.Event:
    """What a sweep or a person decides, told until when a worker could still send."""
    quiescent_at = NOW if about.is_quiet else NEVER
    match kind:
        case Kind.ADOPT:
            assert about.job is not None
            return ev.Adopt(remote_job_id=job_id(about.job), **_BY)
        case Kind.PROVE_ABSENT:
            return ev.ProveAbsent(quiescent_at=quiescent_at, **_BY)
        case Kind.REDISPATCH:
            return ev.Redispatch(quiescent_at=quiescent_at if row.phase is Phase.UNCERTAIN else None, **_BY)
        case Kind.RESUME:
            assert about.parked is not None
            return ev.Resume(lane=COURSE, park_reason=about.parked, **_BY)
        case _:
            return _PLAIN[kind]


class _By(TypedDict):
    actor: str
    reason: str


_BY: _By = {"actor": "eve", "reason": "the model"}
_PLAIN: Mapping[Kind, ev.Event] = {
    Kind.LEASE_ENDED: ev.LeaseEnded(),
    Kind.DEADLINE_PASSED: ev.DeadlinePassed(),
    Kind.REPEATED: ev.Repeated(actor="worker"),
    Kind.CANCEL: ev.Cancel(**_BY),
    Kind.WRITE_OFF: ev.WriteOff(**_BY),
    Kind.REOBSERVE: ev.Reobserve(**_BY),
}
