"""Messages as a person reads them: what waits, for what, and what was set aside. Reading takes no lease."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.store.db import Database, Plan, Row
from coatcheck.store.operations import PAGE
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One instruction that is kept. `message_id` is `<operation_id>.<lane>`; `tenant_id` is None where the operation is gone.

    `lease_count` counts the leases in a row that ended badly, the present one included; `first_leased_at` and `last_leased_at` are the first
    and the last of them. `last_error` is the class of an error, `lease_ended` where a worker died or hung, or the recorded cause of a
    delivery or of a doubt. `account_wait`: why nobody takes what is due, if that lies with its account: `pause`, `shut`, `cap`, `rate`, or
    the `floor` between looks.
    """

    message_id: str
    operation_id: str
    tenant_id: str | None
    provider: str
    account: str | None
    action: str
    phase: str | None
    lane: int
    visible_at: datetime
    lease_count: int
    leased_by: str | None
    leased_at: datetime | None
    wait_reason: str | None
    wait_since_at: datetime | None
    wait_count: int
    parked_at: datetime | None
    park_reason: str | None
    expected_revision: int
    last_error: str | None
    first_leased_at: datetime | None
    last_leased_at: datetime | None
    account_wait: str | None = None

    def as_json(self) -> dict[str, object]:
        """The fields by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


async def messages(
    database: Database, *, action: str | None, provider: str | None, waiting: str | None
) -> AsyncIterator[Message]:
    """Every message that fits, in keyset order, those that are set aside among them."""
    wanted = {"action": action, "provider": provider, "wait_reason": waiting}
    async for found in _pages(database, statement("store", "list_messages"), wanted):
        yield found


async def parked(database: Database, *, reason: str | None) -> AsyncIterator[Message]:
    """Every message that is set aside, for one reason or any."""
    async for found in _pages(database, statement("store", "list_parked"), {"park_reason": reason}):
        yield found


async def load_message(database: Database, operation_id: OperationId, lane: int) -> Message | None:
    """One message by its address."""
    parameters = {"operation_id": operation_id, "lane": lane}
    rows = await database.fetch(statement("store", "load_message"), parameters)
    return _message(rows[0]) if rows else None


async def outputs_at_rest(database: Database, operation_id: OperationId) -> tuple[int, ...]:
    """The outputs that are not delivered and that nobody tries to deliver any more."""
    rows = await database.fetch(statement("store", "find_resting_outputs"), {"operation_id": operation_id})
    return tuple(row["output_index"] for row in rows)


async def _pages(database: Database, page: str, wanted: Mapping[str, Any]) -> AsyncIterator[Message]:
    after, after_lane = UUID(int=0), -1
    while True:
        parameters = {**wanted, "after": after, "after_lane": after_lane, "size": PAGE}
        rows = await database.fetch(page, parameters, plan=Plan.FRESH)
        for row in rows:
            yield _message(row)
        if len(rows) < PAGE:
            return
        after, after_lane = rows[-1]["operation_id"], rows[-1]["lane"]


def _message(row: Row) -> Message:
    operation = operation_text(row["operation_id"])
    return Message(message_id=f"{operation}.{row['lane']}", **{**row, "operation_id": operation})
