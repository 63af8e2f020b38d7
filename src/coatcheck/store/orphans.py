"""Paid remote jobs that no operation could take. Resolving one is a write of its operation: row locked, revision +1, history.

What the service says that it cost corrects the charge of the dispatch which made it, and the tenant's sums with it.
"""

import enum
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId, Phase, RemoteJobId
from coatcheck.store.db import Database, Plan, Row
from coatcheck.store.operations import PAGE
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """One of them. `cost` in `unit`, by the service's figure or assumed (`basis`): the charge of its dispatch, or what that held.

    `operation_id` is the text of the id. `tenant_id`, `phase` and `number` are None where the operation's or the dispatch's row is gone, `cost`
    where no estimate was given. `resolved_at`, `resolved_by` and `resolution` (the reason) are there once a person dealt with it.
    """

    account: str
    remote_job_id: RemoteJobId
    operation_id: str
    tenant_id: str | None
    phase: Phase | None
    number: int | None
    cost: Decimal | None
    unit: str | None
    basis: str | None
    seen_at: datetime
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None

    def as_json(self) -> dict[str, object]:
        """The fields by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Resolved(enum.StrEnum):
    """What became of a resolution. OWNED: it is no orphan; STALE: another revision; OTHER_CHARGE: no dispatch of it is recorded that could be charged."""

    APPLIED = "applied"
    RESOLVED = "resolved"
    OWNED = "owned"
    STALE = "stale"
    OTHER_CHARGE = "other_charge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolving:
    """The answer to a resolution: the operation as it stands, and who resolved the orphan, if anybody had."""

    status: Resolved
    operation_id: OperationId
    revision: int | None
    phase: Phase | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None


async def orphans(database: Database, *, with_resolved: bool) -> AsyncIterator[Orphan]:
    """Every orphan, that of the oldest operation first, in keyset pages."""
    after: tuple[UUID, str, str] = (UUID(int=0), "", "")
    while True:
        parameters = {
            **dict(zip(("after", "after_account", "after_job"), after, strict=True)),
            "with_resolved": with_resolved,
            "size": PAGE,
        }
        rows = await database.fetch(statement("store", "list_orphans"), parameters, plan=Plan.FRESH)
        for row in rows:
            yield _orphan(row)
        if len(rows) < PAGE:
            return
        after = (rows[-1]["operation_id"], rows[-1]["account"], rows[-1]["remote_job_id"])


async def orphans_of(database: Database, operation_id: OperationId) -> Sequence[Orphan]:
    """The orphans of one operation."""
    rows = await database.fetch(statement("store", "orphans_of"), {"operation_id": operation_id})
    return [_orphan(row) for row in rows]


async def resolve(
    database: Database,
    *,
    account: str,
    remote_job_id: str,
    actor: str,
    reason: str,
    charged: Decimal | None,
    revision: int | None,
) -> Resolving | None:
    """Mark an orphan as dealt with; None where no such job is recorded. `charged` is in the unit of its dispatch."""
    parameters = {
        "account": account,
        "remote_job_id": remote_job_id,
        "actor": actor,
        "reason": reason,
        "charged": charged,
        "revision": revision,
    }
    rows = await database.fetch(statement("store", "resolve_orphan"), parameters)
    if not rows:
        return None
    return Resolving(**{**rows[0], "status": Resolved(rows[0]["status"]), "phase": _phase(rows[0])})


def _orphan(row: Row) -> Orphan:
    return Orphan(**{**row, "operation_id": operation_text(row["operation_id"]), "phase": _phase(row)})


def _phase(row: Row) -> Phase | None:
    return None if row["phase"] is None else Phase(row["phase"])
