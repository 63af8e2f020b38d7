"""Protocol faults: counted per operation and kind, so that a service that repeats itself fills no table."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coatcheck.core.operation import OperationId
from coatcheck.store.db import Database, Plan
from coatcheck.store.operations import PAGE
from coatcheck.store.statements import statement

if TYPE_CHECKING:
    from coatcheck.core.steps import Incident

_DETAIL_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One incident of one operation."""

    operation_id: OperationId
    incident: "Incident"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What is kept of an incident; `tenant_id` is None where the operation is gone."""

    operation_id: OperationId
    tenant_id: str | None
    kind: str
    boundary: str
    count: int
    first_at: datetime
    last_at: datetime
    detail: str


async def note(database: Database, batch: Sequence[Note]) -> list[None]:
    """Write incidents down; a repeated kind raises its count."""
    incidents = [each.incident for each in batch]
    parameters = {
        "operation_id": [each.operation_id for each in batch],
        "kind": [incident.kind for incident in incidents],
        "boundary": [incident.boundary for incident in incidents],
        "detail": [incident.detail[:_DETAIL_LIMIT] for incident in incidents],
    }
    await database.fetch(statement("store", "note_incidents"), parameters)
    return [None for _ in batch]


async def incidents(
    database: Database, *, kind: str | None, tenant_id: str | None, since: datetime | None
) -> AsyncIterator[Counted]:
    """Every incident that fits, in keyset order; `since` is about when it was seen last."""
    after, after_kind = UUID(int=0), ""
    while True:
        parameters = {
            "kind": kind,
            "tenant_id": tenant_id,
            "since": since,
            "after": after,
            "after_kind": after_kind,
            "size": PAGE,
        }
        rows = await database.fetch(statement("store", "list_incidents"), parameters, plan=Plan.FRESH)
        for row in rows:
            yield Counted(**row)
        if len(rows) < PAGE:
            return
        after, after_kind = rows[-1]["operation_id"], rows[-1]["kind"]
