"""Protocol faults: counted per operation and kind, so that a service that repeats itself fills no table."""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.core.operation import OperationId
from coatcheck.core.steps import Incident
from coatcheck.store.db import Database
from coatcheck.store.statements import statement

_DETAIL_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One incident of one operation."""

    operation_id: OperationId
    incident: Incident


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
