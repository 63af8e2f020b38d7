"""The smallest books that tell a whole life: one operation whose first dispatch never left, whose second was accepted, and that is delivered.

A test writes one contradiction into them. Each table has the columns that the checker reads and no others.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.sim import PostRecord
from coatcheck.sim.course import Course, OutputPlan
from coatcheck.sim.jobs import Job
from coatcheck.sim.media import Media
from simulation.checker import REFERENCE, Books

Row = dict[str, Any]
ONE, UNSENT, SENT, STRANGER = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=9)
"""The operation, its two dispatches, and nobody."""
TEXT = '{"prompt":"a red bird"}'
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
COURSE: Mapping[str, Any] = {"queued_s": 1, "processing_s": 1, "price": 3, "refund": None, "outputs": (OutputPlan(),)}


def at(seconds: float) -> datetime:
    """An instant of the story."""
    return BEGINNING + timedelta(seconds=seconds)


class BookOfOne:
    """The three books, in which anything can be written."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.sink = folder / "sink"
        self.media = Media(content_type="image/png", length=64, block=b"." * 64)
        self.job = _job(self.media)
        self.posts = [self.post(1)]
        path = self.object("0.png", b"".join(self.media))
        self.tables: dict[str, list[Row]] = _tables(path.as_uri(), self.media.sha256())

    # -- what there is ------------------------------------------------------------------------------------------------

    @property
    def operation(self) -> Row:
        return self.tables["operations"][0]

    @property
    def dispatches(self) -> list[Row]:
        """First the one that was not sent."""
        return self.tables["dispatches"]

    @property
    def history(self) -> list[Row]:
        return self.tables["history"]

    @property
    def outputs(self) -> list[Row]:
        return self.tables["deliveries"]

    # -- what can be written ------------------------------------------------------------------------------------------

    def post(self, order: int, **changes: Any) -> PostRecord:
        """A POST that the second dispatch sent."""
        record = PostRecord(
            order=order,
            at=at(11).isoformat(),
            path="/v1/generations",
            headers={REFERENCE: str(SENT)},
            body_sha256=DIGEST,
            body_text=TEXT,
            complete=True,
            created="job-1" if order == 1 else None,
        )
        return replace(record, **changes)

    def lane(self, number: int, **changes: Any) -> None:
        self.tables["outbox"].append(
            {"operation_id": ONE, "lane": number, "leased_by": None, "parked_at": None, **changes}
        )

    def stands_at(self, axis: str, state: str) -> None:
        """All books say that the operation came to another state than it did."""
        former = self.operation[axis]
        self.operation[axis] = state
        for row in self.history:
            row.update({name: state for name in (f"from_{axis}", f"to_{axis}") if row[name] == former})

    def object(self, name: str, content: bytes, *, owner: UUID = ONE) -> Path:
        """A file of the sink, where an operation's outputs lie."""
        path = self.sink / operation_text(OperationId(owner)) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def without_outputs(self) -> None:
        """The render made nothing."""
        self.outputs.clear()
        self.operation.update(output_count=0, delivered_count=0)
        self.job = replace(self.job, media=())
        for path in self.sink.rglob("*.png"):
            path.unlink()

    # -- as the checker reads it --------------------------------------------------------------------------------------

    @property
    def books(self) -> Books:
        return Books.of(self.tables, self.posts, [self.job], self.sink)


def _job(media: Media) -> Job:
    course = Course(outcome="succeeded", outputs_as="objects", final_word="", error_code="", error_message="", **COURSE)
    return Job(
        id="job-1",
        number=1,
        post=1,
        at=11.0,
        created_at="",
        owner="",
        reference=None,
        prompt=None,
        course=course,
        rules=(),
        media=(media,),
    )


def _tables(uri: str, digest: str) -> dict[str, list[Row]]:
    operation = {
        "operation_id": ONE,
        "operation_key": "bird",
        "tenant_id": "ada",
        "account": "genace",
        "specification_hash": bytes.fromhex(DIGEST),
        "dispatch_id": SENT,
        "remote_job_id": "job-1",
        "phase": "accepted",
        "render_state": "succeeded",
        "delivery_state": "delivered",
        "authorisation": 1,
        "revision": 6,
        "dispatch_count": 2,
        "output_count": 1,
        "delivered_count": 1,
        "failed_count": 0,
    }
    output = {"operation_id": ONE, "output_index": 0, "state": "delivered", "uri": uri, "sha256": digest}
    return {
        "operations": [operation],
        "specifications": [{"operation_id": ONE, "specification_text": TEXT}],
        "outbox": [],
        "dispatches": [
            _dispatch(UNSENT, 1, "not_sent", begun_at=at(1)),
            _dispatch(SENT, 2, "accepted", begun_at=at(10), remote_job_id="job-1", charged=3),
        ],
        "remote_jobs": [{"account": "genace", "remote_job_id": "job-1", "operation_id": ONE, "role": "owner"}],
        "snapshots": [{"operation_id": ONE}],
        "deliveries": [output],
        "history": _history(),
        "accounts": [{"account": "genace", "max_in_flight": 4, "in_flight_count": 0}],
        "allowances": [{"tenant_id": "ada", "unit": "credits", "held": 0, "charged": 3}],
    }


def _dispatch(dispatch_id: UUID, number: int, outcome: str, **changes: Any) -> Row:
    return {
        "dispatch_id": dispatch_id,
        "operation_id": ONE,
        "number": number,
        "outcome": outcome,
        "authorisation": 1,
        "displaced": False,
        "remote_job_id": None,
        "unit": "credits",
        "held": 0,
        "charged": 0,
        "settled_at": at(2),
        **changes,
    }


def _history() -> list[Row]:
    course = [
        ("enqueued", 0, "prepared", "none", "not_started"),
        ("dispatch_marked", 1, "dispatching", "none", "not_started"),
        ("not_sent", 2, "prepared", "none", "not_started"),
        ("dispatch_marked", 10, "dispatching", "none", "not_started"),
        ("accepted", 12, "accepted", "none", "not_started"),
        ("render_finished", 20, "accepted", "succeeded", "pending"),
        ("delivered", 30, "accepted", "succeeded", "delivered"),
    ]
    rows: list[Row] = []
    before: Sequence[str | None] = (None, None, None)
    for revision, (event, second, *states) in enumerate(course):
        row: Row = {"operation_id": ONE, "revision": revision, "event": event, "at": at(second)}
        for axis, was, becomes in zip(("phase", "render_state", "delivery_state"), before, states, strict=True):
            row |= {f"from_{axis}": was, f"to_{axis}": becomes}
        rows.append(row)
        before = states
    return rows
