"""Ends of POSTs as a worker would keep them."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId, RenderState
from coatcheck.spool.record import Record

INSTALLATION = UUID(int=7)
ELSEWHERE = UUID(int=8)
DISPATCH = DispatchId(UUID(int=2))
JOB = RemoteJobId("job-\u00e9\u2028-1")
FINAL = ev.Snapshot(
    remote_job_id=JOB,
    remote_status="completed",
    render_state=RenderState.SUCCEEDED,
    credits=ev.Credits(charged=Decimal("1.5")),
)
REPLIES: tuple[ev.Reply, ...] = (
    ev.Accepted(dispatch_id=DISPATCH, remote_job_id=JOB, observe_for_s=0.1),
    ev.FailedWithId(dispatch_id=DISPATCH, remote_job_id=JOB, observe_for_s=3.0),
    ev.Rejected(dispatch_id=DISPATCH, status=400),
    ev.Throttled(dispatch_id=DISPATCH, retry_after_s=1.5, delay_s=2.25),
    ev.Throttled(dispatch_id=DISPATCH, retry_after_s=None),
    ev.NotSent(dispatch_id=DISPATCH, cause="refused", delay_s=0.30000000000000004),
    ev.Doubted(dispatch_id=DISPATCH, cause="cut", candidate=JOB),
)
EXCHANGE = Exchange(
    stage=Stage.BODY_RECEIVED,
    bytes_sent=200,
    bytes_received=100,
    status=201,
    headers=(("x-request-id", "r-1"), ("cf-ray", "\x7f\u00ff")),
    body=bytes(range(256)),
    complete=True,
    framed=True,
    failure="timeout",
    marks_ms=((Stage.CONNECTING, 0), (Stage.BODY_SENT, 12)),
)


def record(reply: ev.Reply = REPLIES[0], *, number: int = 1) -> Record:
    """The end of one POST."""
    return Record(
        operation_id=OperationId(UUID(int=number)),
        reply=reply,
        exchange=EXCHANGE,
        account="genace",
        number=3,
        authorisation=2,
        authorised_by="ada",
        settle_s=12.5,
        begun_ago_s=1.75,
        held=Decimal("4.50"),
        unit="credits",
        kept_at=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    )


def of(number: int) -> Record:
    """The end of the POST of this number."""
    return record(ev.Doubted(dispatch_id=DispatchId(UUID(int=number)), cause="cut"), number=number)
