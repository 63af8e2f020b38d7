"""Rows as the store reads them for one operation's story: each is valid, and a test names only what it is about."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from coatcheck.app.story import flat, tell
from coatcheck.core.evidence import Stage
from coatcheck.core.operation import DispatchId, Operation, Outcome
from core.operations import DISPATCH, NOW

Row = dict[str, Any]
OTHER = DispatchId(UUID(int=3))
_MS = dict(zip(Stage, (0, 1, 12, 30, 41, 41, 42, 260, 261), strict=True))

_EMPTY: dict[str, list[Row]] = {"dispatches": [], "messages": [], "incidents": [], "history": []}


def dispatch(stage: Stage = Stage.BODY_SENT, outcome: Outcome = Outcome.UNCERTAIN, **changes: object) -> Row:
    """A dispatch whose POST ended after `stage`, four minutes ago."""
    begun_at = NOW - timedelta(minutes=4)
    answered = stage.rank >= Stage.STATUS_RECEIVED.rank
    row: Row = {
        "dispatch_id": DISPATCH,
        "operation_id": UUID(int=1),
        "number": 1,
        "authorisation": 1,
        "authorised_by": "shop",
        "account": "genace",
        "worker": "host-7-0a1b2c",
        "begun_at": begun_at,
        "send_by_at": begun_at + timedelta(seconds=5),
        "quiescent_at": NOW - timedelta(minutes=3),
        "ended_at": begun_at + timedelta(seconds=1),
        "stage": stage,
        "marks_ms": {each.value: _MS[each] for each in Stage if each.rank <= stage.rank},
        "bytes_sent": 277 if stage.rank >= Stage.BODY_SENT.rank else 100 if stage is Stage.HEADERS_BEGUN else 0,
        "bytes_received": 190 if answered else 0,
        "outcome": outcome,
        "cause": "closed",
        "http_status": 201 if answered else None,
        "request_ids": None,
        "candidate_id": None,
        "remote_job_id": None,
        "reply": None,
        "displaced": False,
        "held": Decimal(5),
        "charged": None,
        "unit": "credits",
        "basis": None,
        "settled_at": None,
        "orphaned": Decimal(0),
        "job_operation_id": None,
        "job_resolved_at": None,
        "job_resolved_by": None,
        "job_resolution": None,
    }
    return row | changes


def swept(**changes: object) -> Row:
    """A dispatch whose worker never reported its end."""
    silent: Row = {"ended_at": None, "marks_ms": None, "cause": "lease_ended", "bytes_sent": 0, "http_status": None}
    return dispatch(Stage.MARKED) | silent | changes


def message(action: str = "dispatch", lane: int = 0, **changes: object) -> Row:
    """A message that has been due for a second and waits for a worker."""
    row: Row = {
        "operation_id": UUID(int=1),
        "lane": lane,
        "action": action,
        "schema_version": 1,
        "provider": "genace",
        "account": None,
        "expected_revision": 0,
        "expected_remote_job_id": None,
        "visible_at": NOW - timedelta(seconds=1),
        "lease_token": 1,
        "lease_count": 0,
        "leased_by": None,
        "leased_at": None,
        "wait_reason": None,
        "wait_since_at": None,
        "wait_count": 0,
        "parked_at": None,
        "park_reason": None,
        "account_wait": None,
    }
    return row | changes


def parked(reason: str, action: str = "reconcile", lane: int = 0) -> Row:
    """A message that waits for a person."""
    return message(action, lane, parked_at=NOW - timedelta(minutes=2), park_reason=reason)


def entry(event: str, actor: str = "ann", reason: str | None = None, **changes: object) -> Row:
    """A line of the history, two minutes old."""
    row: Row = {
        "event": event,
        "actor": actor,
        "reason": reason,
        "at": NOW - timedelta(minutes=2),
        "dispatch_id": DISPATCH,
    }
    return row | changes


def incident(kind: str, detail: str = "what was seen", boundary: str = "theirs") -> Row:
    """An incident that happened twice."""
    seen_at = NOW - timedelta(minutes=1)
    return {"kind": kind, "boundary": boundary, "detail": detail, "count": 2, "first_at": seen_at, "last_at": seen_at}


def lost_reply() -> dict[str, list[Row]]:
    """The whole request left, and of its reply a part that names a job."""
    row = dispatch(
        Stage.STATUS_RECEIVED,
        reply=b'{"job_id":"job-17","sta',
        candidate_id="job-17",
        request_ids={"x-request-id": "req-9a", "cf-ray": "8f2-AMS"},
    )
    marked = entry("dispatch_marked", "host-7-0a1b2c", at=NOW - timedelta(minutes=4))
    doubted = entry("became_uncertain", "host-7-0a1b2c", "closed", at=NOW - timedelta(seconds=239))
    return {"dispatches": [row], "messages": [parked("uncertain")], "history": [marked, doubted]}


def story(operation: Operation, **kept: list[Row]) -> list[str]:
    """The story's lines, as the operator is told it."""
    return flat(tell(operation, {**_EMPTY, **kept}, now=NOW))


def page(operation: Operation, **kept: list[Row]) -> str:
    """The same as one text."""
    return "\n".join(story(operation, **kept))


def page_of_tenant(operation: Operation, **kept: list[Row]) -> str:
    """The story as one text, as a tenant is told it."""
    return "\n".join(flat(tell(operation, {**_EMPTY, **kept}, now=NOW, for_tenant=True)))
