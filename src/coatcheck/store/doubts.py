"""What waits for a person's decision, and what a decision rests on. Read by way of the outbox: operations are never searched through."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from coatcheck.core.actions import ParkReason
from coatcheck.core.evidence import Stage
from coatcheck.core.operation import DispatchId, Operation, OperationId, Phase, RemoteJobId
from coatcheck.store.db import Database, Plan, Row
from coatcheck.store.operations import PAGE, operation_of
from coatcheck.store.statements import statement

IN_DOUBT = (ParkReason.UNCERTAIN, ParkReason.LEASE_COUNT)
"""Why the course of an uncertain operation may be parked."""
STUCK = (ParkReason.MISSING, ParkReason.STALLED)
"""Why that of a known remote job may be parked until a person decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a history, as far as it tells who did what."""

    event: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An operation, the dispatch that it stands on (None where its row is gone), and why its course is parked.

    `held` is what the dispatch holds now, `next_estimate` what another one would hold, both in the operation's unit or `held_unit`;
    `newest` the last entry of its history, `departure` how it left a state in which a person had something to decide,
    if no other phase came after that. `is_retired`: retention removed its specification, so it cannot be sent again.
    """

    operation: Operation
    number: int | None
    used_authorisation: int | None
    worker: str | None
    begun_at: datetime | None
    quiescent_at: datetime | None
    stage: Stage | None
    cause: str | None
    http_status: int | None
    candidate_id: RemoteJobId | None
    held: Decimal | None
    held_unit: str | None
    park_reason: str | None
    next_estimate: Decimal | None = None
    newest: Entry | None = None
    departure: Entry | None = None
    is_retired: bool = False

    @property
    def is_quiescent(self) -> bool:
        """Whether nothing of the dispatch can arrive at the service any more, by the database's clock when this was read."""
        return self.quiescent_at is not None and self.quiescent_at <= self.operation.read_at

    @property
    def at_risk(self) -> Decimal | None:
        """What the dispatch holds; None where nobody knows: its row is gone, or it holds 0 because no estimate was given."""
        return None if not self.held and self.operation.estimate is None else self.held

    @property
    def is_stalled(self) -> bool:
        """Whether looking at the remote job was given up although it is not final."""
        return self.park_reason == ParkReason.STALLED and not self.operation.is_final


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlapping:
    """Another tenant's dispatch that may have made a job in the same account at the same time."""

    operation_id: OperationId
    tenant_id: str
    phase: Phase
    begun_at: datetime
    quiescent_at: datetime
    candidate_id: RemoteJobId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """To whom a remote job belongs, of which of their dispatches it is, and of an orphan, who dealt with it."""

    account: str
    remote_job_id: RemoteJobId
    operation_id: OperationId
    dispatch_id: DispatchId | None
    role: str
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None


async def doubts(database: Database, *, tenant_id: str | None, with_stuck: bool) -> AsyncIterator[Standing]:
    """Every uncertain operation, oldest first, in keyset pages; `with_stuck` adds remote jobs that are missing or stalled."""
    after = UUID(int=0)
    reasons = [*IN_DOUBT, *(STUCK if with_stuck else ())]
    while True:
        parameters = {"park_reason": reasons, "tenant_id": tenant_id, "after": after, "size": PAGE}
        rows = await database.fetch(statement("store", "list_doubts"), parameters, plan=Plan.FRESH)
        for row in rows:
            yield _standing(row)
        if len(rows) < PAGE:
            return
        after = rows[-1]["operation_id"]


async def load_doubt(database: Database, operation_id: OperationId, tenant_id: str | None = None) -> Standing | None:
    """One operation with all that a decision about it rests on, in whatever phase; None for an unknown id.

    With `tenant_id` a foreign id is an unknown one.
    """
    parameters = {"operation_id": operation_id, "tenant_id": tenant_id}
    rows = await database.fetch(statement("store", "load_doubt"), parameters)
    return _standing(rows[0]) if rows else None


async def recorded(database: Database, jobs: Sequence[tuple[str, str]]) -> list[Recorded]:
    """Which of these remote jobs, each an account and an id, are recorded, and for which operation."""
    parameters = {"account": [account for account, _ in jobs], "remote_job_id": [job for _, job in jobs]}
    return [Recorded(**row) for row in await database.fetch(statement("store", "find_jobs"), parameters)]


async def overlapping(
    database: Database, *, account: str, tenant_id: str, since: datetime, until: datetime
) -> tuple[Overlapping, ...]:
    """Dispatches of other tenants in the account that may have made a job in a window, whatever became of their operations."""
    parameters = {
        "account": account,
        "tenant_id": tenant_id,
        "since": since,
        "until": until,
    }
    rows = await database.fetch(statement("store", "find_overlaps"), parameters)
    return tuple(Overlapping(**{**row, "phase": Phase(row["phase"])}) for row in rows)


def _standing(row: Row) -> Standing:
    own = ("number", "used_authorisation", "worker", "begun_at", "quiescent_at", "cause", "http_status", "candidate_id")
    return Standing(
        operation=operation_of(row),
        stage=None if row["stage"] is None else Stage(row["stage"]),
        **{name: row[name] for name in (*own, "held", "held_unit", "park_reason")},
        next_estimate=row.get("next_estimate"),
        newest=_entry(row, "newest"),
        departure=_entry(row, "departure"),
        is_retired=row.get("is_retired", False),
    )


def _entry(row: Row, name: str) -> Entry | None:
    event = row.get(f"{name}_event")
    return None if event is None else Entry(event=event, actor=row[f"{name}_actor"], at=row[f"{name}_at"])
