"""The one door for writes: a batch of steps goes in as arrays, and each comes back applied, stale or waiting.

One statement per kind of step. Nothing else changes an operation.
"""

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from coatcheck.core.actions import Aim, Drop, DropAll, LaneChange, Look, Park
from coatcheck.core.evidence import Exchange
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import OperationId
from coatcheck.core.steps import ConcludeStep, DecideStep, DeliverStep, MarkStep, SnapshotStep
from coatcheck.store.db import Database, Row
from coatcheck.store.statements import statement

REPLY_LIMIT_BYTES = 4096
"""How much of a reply is kept as evidence."""
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"))
"""`json.dumps` would make such an encoder for each text."""


class Status(enum.StrEnum):
    """What became of a step: STALE means reload and decide again, EVIDENCE that only the reply was kept, OWNED that another has the id.

    PAUSED, ALLOWANCE, CAP and RATE: the mark has no leave yet, and its lane waits already.
    """

    APPLIED = "applied"
    STALE = "stale"
    PAUSED = "paused"
    ALLOWANCE = "allowance"
    CAP = "cap"
    RATE = "rate"
    EVIDENCE = "evidence"
    OWNED = "owned"
    UNKNOWN = "unknown"


@frozen
class Saved:
    """The answer to a save. `revision` is the operation's new one; `lease_token`, `held` and its `unit` come with an applied mark.

    `spent` and `released` are what a decision made of held money, in the dispatches' unit; None where it moved none.
    """

    status: Status
    revision: int | None = None
    lease_token: int | None = None
    held: Decimal | None = None
    unit: str | None = None
    spent: Decimal | None = None
    released: Decimal | None = None

    @property
    def applied(self) -> bool:
        """Whether the step itself took effect."""
        return self.status is Status.APPLIED


@frozen
class MarkSave:
    """A mark with its windows, in seconds: until no first byte may leave, until nothing can arrive any more, the lease, a pause."""

    step: MarkStep
    send_s: float
    quiescent_s: float
    lease_s: float
    pause_s: float


@frozen
class ConcludeSave:
    """A conclusion with its evidence and what is needed to write a vanished dispatch row anew."""

    step: ConcludeStep
    exchange: Exchange
    account: str
    number: int
    authorisation: int
    authorised_by: str
    settle_s: float
    begun_ago_s: float
    held: Decimal | None = None
    """What the mark held, should its row have vanished."""
    unit: str | None = None
    request_ids: Mapping[str, str] = field(default_factory=dict)
    reply: bytes | None = field(default=None, repr=False)
    shut_s: float | None = None
    """For how long the service asked not to be sent anything."""


@frozen
class SnapshotSave:
    """A look's changes, guarded by the revision and the remote job id that it was about."""

    step: SnapshotStep


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverSave:
    """A delivery's end, guarded by its output not being delivered yet."""

    step: DeliverStep


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideSave:
    """What a person, a deadline or the end of a lease decided, guarded by the revision that was read."""

    step: DecideStep


Save = MarkSave | ConcludeSave | SnapshotSave | DeliverSave | DecideSave
Columns = dict[str, Any]


class Door:
    """Writes batches for one worker; a batch names each operation at most once.

    Raises what psycopg raises and `CommitUnknown`: the committer decides what follows from a failure.
    """

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker

    async def mark(self, batch: Sequence[MarkSave]) -> list[Saved]:
        """Commit "may be sent from now on" where the operation is prepared, due and unchanged, and its account is not paused."""
        columns = {
            **_steps(batch, "operation_id", "revision", "dispatch_id", "account"),
            **_own(batch, "send_s", "quiescent_s", "lease_s", "pause_s"),
        }
        return await self._write("mark", batch, columns)

    async def conclude(self, batch: Sequence[ConcludeSave]) -> list[Saved]:
        """Save the ends of POSTs: evidence always, the conclusion where dispatch and phase still allow it, whatever the revision."""
        columns = {
            **_steps(
                batch,
                "operation_id",
                "dispatch_id",
                "event",
                "outcome",
                "phase",
                "withdrawn",
                "cause",
                "remote_job_id",
                "candidate_id",
                "observe_for_s",
            ),
            **_own(
                batch,
                "account",
                "number",
                "authorisation",
                "authorised_by",
                "settle_s",
                "begun_ago_s",
                "held",
                "unit",
                "reply",
                "shut_s",
            ),
            **_evidence(batch),
            **_lanes(batch),
        }
        return await self._write("conclude", batch, columns)

    async def snapshot(self, batch: Sequence[SnapshotSave]) -> list[Saved]:
        """Save what looks changed where revision and remote job id are those that were read; a final state stays."""
        columns = {
            **_steps(
                batch,
                "operation_id",
                "revision",
                "remote_job_id",
                "event",
                "remote_status",
                "render_state",
                "settles",
                "error_code",
            ),
            **_money(batch),
            **_outputs(batch),
            **_lanes(batch),
        }
        return await self._write("snapshot", batch, columns)

    async def deliver(self, batch: Sequence[DeliverSave]) -> list[Saved]:
        """Save the ends of deliveries, one output each; a delivered one stays, whoever comes later."""
        columns = {
            **_steps(batch, "operation_id", "event", "result", "uri", "sha256", "bytes", "sniffed_type", "cause"),
            "output_index": [save.step.index for save in batch],
            **_lanes(batch),
        }
        return await self._write("deliver", batch, columns)

    async def decide(self, batch: Sequence[DecideSave]) -> list[Saved]:
        """Save decisions where the revision is the one that was read, with actor and reason."""
        columns = {
            **_steps(
                batch,
                "operation_id",
                "revision",
                "event",
                "phase",
                "render_state",
                "actor",
                "reason",
                "outcome",
                "settles",
                "authorises",
                "requests_cancel",
                "cancel_answer",
                "clears_withdrawal",
                "remote_job_id",
                "observe_for_s",
            ),
            **_redelivered(batch),
            **_lanes(batch),
        }
        return await self._write("decide", batch, columns)

    async def _write(self, name: str, batch: Sequence[Save], columns: Columns) -> list[Saved]:
        rows = await self._database.fetch(statement("store", name), {**columns, "worker": self._worker})
        answers: dict[OperationId, Row] = {row["operation_id"]: row for row in rows}
        return [_saved(answers[save.step.operation_id]) for save in batch]


def _saved(row: Row) -> Saved:
    told = {name: row[name] for name in ("revision", "lease_token", "held", "unit", "spent", "released") if name in row}
    return Saved(status=Status(row["status"]), **told)


def _steps(batch: Sequence[Save], *names: str) -> Columns:
    return {name: [getattr(save.step, name) for save in batch] for name in names}


def _own(batch: Sequence[Save], *names: str) -> Columns:
    return {name: [getattr(save, name) for save in batch] for name in names}


def _evidence(batch: Sequence[ConcludeSave]) -> Columns:
    exchanges = [save.exchange for save in batch]
    return {
        "stage": [exchange.stage for exchange in exchanges],
        "marks_ms": [_COMPACT.encode(dict(exchange.marks_ms)) for exchange in exchanges],
        "bytes_sent": [exchange.bytes_sent for exchange in exchanges],
        "bytes_received": [exchange.bytes_received for exchange in exchanges],
        "http_status": [exchange.status for exchange in exchanges],
        "request_ids": [json.dumps(dict(save.request_ids)) if save.request_ids else None for save in batch],
    }


def _money(batch: Sequence[SnapshotSave]) -> Columns:
    figures = [save.step.credits for save in batch]
    return {
        "charged": [known.charged if known else None for known in figures],
        "refunded": [known.refunded if known else None for known in figures],
        "unit": [known.unit if known else None for known in figures],
    }


def _outputs(batch: Sequence[SnapshotSave]) -> Columns:
    rows = [(save.step.operation_id, output) for save in batch for output in save.step.outputs]
    return {
        "output_operation_id": [operation_id for operation_id, _ in rows],
        "output_index": [output.index for _, output in rows],
        "output_source": [output.url for _, output in rows],
        "output_type": [output.content_type for _, output in rows],
        "output_bytes": [output.bytes for _, output in rows],
        "output_sha256": [output.sha256 for _, output in rows],
    }


def _redelivered(batch: Sequence[DecideSave]) -> Columns:
    rows = [(save.step.operation_id, index) for save in batch for index in save.step.redelivers]
    return {"redeliver_operation_id": [row[0] for row in rows], "redeliver_index": [row[1] for row in rows]}


def _lanes(batch: Sequence[ConcludeSave | SnapshotSave | DeliverSave | DecideSave]) -> Columns:
    rows = [(save.step.operation_id, *_lane(change)) for save in batch for change in save.step.lanes]
    names = ("lane_operation_id", "lane", "lane_verb", "lane_action", "lane_delay_s", "lane_reason")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _lane(change: LaneChange) -> tuple[int | None, str, str | None, float | None, str | None]:
    match change:
        case Aim():
            return change.lane, "aim", change.action, float(change.delay_s), change.wait_reason
        case Park():
            return change.lane, "park", change.action, None, change.reason
        case Drop():
            return change.lane, "drop", None, None, None
        case DropAll():
            return None, "drop_all", None, None, None
        case Look():
            return 0, "look_again" if change.resumes else "look", None, None, None
