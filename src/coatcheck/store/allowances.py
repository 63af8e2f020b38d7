"""What a tenant may spend in a unit. An allowance's held and charged are the sums over its tenant's dispatches, from its first instant on.

So one that begins is added up while nobody can write a dispatch: a writer either committed before the sums were read, or starts after
them and finds the row. Another limit for an allowance that there is locks that row alone. What waits is due again in the same transaction.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from coatcheck.seams import Faults
from coatcheck.store.db import Database, Plan, Row
from coatcheck.store.limiting import Connection, alone, changing
from coatcheck.store.statements import statement

PAGE: Final = 500
"""Allowances a list asks for at a time."""
_FIRST: Final = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """One tenant's allowance in one unit. `limit` and `left` None: counted without a limit. `waiting` operations wait for it."""

    tenant_id: str
    unit: str
    limit: Decimal | None
    held: Decimal
    charged: Decimal
    left: Decimal | None
    waiting: int
    updated_at: datetime
    set_by: str


async def set_allowance(
    url: str, *, tenant_id: str, unit: str, limit: Decimal | None, actor: str, faults: Faults
) -> Allowance:
    """Set a limit, None for counting without one, and let what waits for the allowance try again. Repeating it is harmless.

        await set_allowance(url, tenant_id="t1", unit="credits", limit=Decimal(10), actor="ada", faults=NO_FAULTS)

    Raises `Unavailable` where nothing changed and `CommitUnknown` where nobody saw whether it did.
    """
    async with changing(url, "allowance", shown_by="coatcheck allowance show", faults=faults) as connection:
        return await _set(connection, tenant_id, unit, limit, actor)


async def list_allowances(
    database: Database, *, tenant_id: str | None = None, unit: str | None = None
) -> AsyncIterator[Allowance]:
    """Every allowance of the tenant and the unit, by these two; without one of them, of all.

    async for allowance in list_allowances(database, tenant_id="t1"):
        ...
    """
    after = _FIRST
    while True:
        rows = await database.fetch(*_page(after, tenant_id, unit), plan=Plan.FRESH)
        for row in rows:
            yield Allowance(**row)
        if len(rows) < PAGE:
            return
        after = (rows[-1]["tenant_id"], rows[-1]["unit"])


async def _set(connection: Connection, tenant_id: str, unit: str, limit: Decimal | None, actor: str) -> Allowance:
    wish = {"tenant_id": tenant_id, "unit": unit, "ceiling": limit, "actor": actor}
    changed = await connection.execute(statement("store", "change_allowance"), wish)
    if not changed.rowcount:
        await alone(connection)
        await connection.execute(statement("store", "open_allowance"), wish)
    # a statement of its own, so that it sees what every mark left behind that was judged by the former limit
    await connection.execute(statement("store", "wake_allowance"), {"tenant_id": tenant_id, "unit": unit})
    listed = await connection.execute(*_page(_FIRST, tenant_id, unit))
    (row,) = await listed.fetchall()
    return Allowance(**row)


def _page(after: tuple[str, str], tenant_id: str | None, unit: str | None) -> tuple[str, Row]:
    place: Row = {"after_tenant": after[0], "after_unit": after[1], "size": PAGE}
    return statement("store", "list_allowances"), {**place, "tenant_id": tenant_id, "unit": unit}
