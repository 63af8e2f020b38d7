"""Reads: operations by id for the handlers, by tenant for everyone else. Reading never locks and never decides."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coatcheck.core.operation import (
    CancelAnswer,
    DeliveryState,
    Operation,
    OperationId,
    Phase,
    RenderState,
)
from coatcheck.store.db import Database, Plan, Row
from coatcheck.store.statements import statement

PAGE = 500
"""Rows a list asks for at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One output on its way into the sink. The source may be a signed URL: never shown."""

    index: int
    state: str
    source: str = field(repr=False)
    declared_type: str | None
    declared_bytes: int | None
    declared_sha256: str | None
    uri: str | None
    sha256: str | None
    bytes: int | None
    sniffed_type: str | None


def _shared(word: Any) -> Any:
    """The one copy that this process has of a word that thousands of operations in hand have in common."""
    return sys.intern(word) if type(word) is str else word


def operation_of(row: Row) -> Operation:
    """The operation in a row that has at least its columns; a word that is no phase or state raises ValueError."""
    return Operation(
        operation_id=row["operation_id"],
        tenant_id=_shared(row["tenant_id"]),
        operation_key=row["operation_key"],
        provider=_shared(row["provider"]),
        account=_shared(row["account"]),
        specification_hash=row["specification_hash"].hex(),
        phase=Phase(row["phase"]),
        authorisation=row["authorisation"],
        authorised_by=_shared(row["authorised_by"]),
        dispatch_id=row["dispatch_id"],
        dispatch_count=row["dispatch_count"],
        render_state=RenderState(row["render_state"]),
        remote_status=_shared(row["remote_status"]),
        delivery_state=DeliveryState(row["delivery_state"]),
        output_count=row["output_count"],
        delivered_count=row["delivered_count"],
        failed_count=row["failed_count"],
        remote_job_id=row["remote_job_id"],
        revision=row["revision"],
        estimate=row["estimate"],
        unit=_shared(row["unit"]),
        priority=row["priority"],
        not_before_at=row["not_before_at"],
        dispatch_by_at=row["dispatch_by_at"],
        observe_by_at=row["observe_by_at"],
        cancel_requested_at=row["cancel_requested_at"],
        cancel_answer=None if row["cancel_answer"] is None else CancelAnswer(row["cancel_answer"]),
        accepted_at=row["accepted_at"],
        final_at=row["final_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        read_at=row["read_at"],
    )


def delivery_of(row: Row) -> Delivery:
    """The output in a row of `coatcheck.deliveries`."""
    return Delivery(index=row["output_index"], **{name: row[name] for name in Delivery.__slots__ if name in row})


async def load(database: Database, operation_ids: Sequence[OperationId]) -> dict[OperationId, Operation]:
    """Operations by id, in one statement, as of one instant (`read_at`)."""
    rows = await database.fetch(statement("store", "load"), {"operation_id": list(operation_ids)})
    return {row["operation_id"]: operation_of(row) for row in rows}


async def load_deliveries(
    database: Database, operation_ids: Sequence[OperationId]
) -> dict[OperationId, tuple[Delivery, ...]]:
    """All outputs of each operation, in order."""
    rows = await database.fetch(statement("store", "load_deliveries"), {"operation_id": list(operation_ids)})
    found: dict[OperationId, list[Delivery]] = {operation_id: [] for operation_id in operation_ids}
    for row in rows:
        found[row["operation_id"]].append(delivery_of(row))
    return {operation_id: tuple(outputs) for operation_id, outputs in found.items()}


async def find(database: Database, operation_id: OperationId, tenant_id: str | None) -> Operation | None:
    """One operation under its tenant condition; a foreign id is an unknown id. `tenant_id` None is the operator's view."""
    rows = await database.fetch(statement("store", "find"), {"operation_id": operation_id, "tenant_id": tenant_id})
    return operation_of(rows[0]) if rows else None


async def scan(
    database: Database, *, tenant_id: str | None, phase: Phase | None, limit: int | None
) -> AsyncIterator[tuple[Operation, tuple[Delivery, ...]]]:
    """Every matching operation with its outputs, oldest first, in keyset pages: a list may be longer than memory."""
    page = statement("store", "list") if tenant_id is None else statement("store", "list_of_tenant")
    after: UUID = UUID(int=0)
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        parameters: Mapping[str, Any] = {"tenant_id": tenant_id, "phase": phase, "after": after, "size": size}
        rows = await database.fetch(page, parameters, plan=Plan.FRESH)
        outputs = await load_deliveries(database, [row["operation_id"] for row in rows]) if rows else {}
        for row in rows:
            yield operation_of(row), outputs[row["operation_id"]]
        if len(rows) < size:
            return
        after = rows[-1]["operation_id"]
        left = None if left is None else left - len(rows)


async def story(database: Database, operation_id: OperationId) -> dict[str, list[Row]]:
    """Everything kept about one operation: dispatches, messages, incidents, history."""
    names = ("dispatches", "messages", "incidents", "history")
    parameters = {"operation_id": operation_id}
    return {name: list(await database.fetch(statement("store", f"show_{name}"), parameters)) for name in names}
