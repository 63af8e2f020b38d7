"""Reads: operations by id for the handlers, by tenant for everyone else. Reading never locks and never decides."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final
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


_FEW: Final = ("tenant_id", "provider", "account", "authorised_by", "remote_status", "unit")
"""Words that thousands of operations in hand have in common."""
_READ: Final = (*_FEW, "specification_hash", "phase", "render_state", "delivery_state", "cancel_answer")
_ALIKE: Final = tuple(each.name for each in fields(Operation) if each.name not in _READ)
"""What an operation takes from its row as it is."""


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


def _shared(word: str | None) -> str | None:
    """The one copy that this process has of a word."""
    return sys.intern(word) if type(word) is str else word


def operation_of(row: Row) -> Operation:
    """The operation in a row that has at least its columns; a word that is no phase or state raises ValueError."""
    alike: dict[str, Any] = {name: row[name] for name in _ALIKE}
    few: dict[str, Any] = {name: _shared(row[name]) for name in _FEW}
    return Operation(
        **alike,
        **few,
        specification_hash=row["specification_hash"].hex(),
        phase=Phase(row["phase"]),
        render_state=RenderState(row["render_state"]),
        delivery_state=DeliveryState(row["delivery_state"]),
        cancel_answer=None if row["cancel_answer"] is None else CancelAnswer(row["cancel_answer"]),
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
