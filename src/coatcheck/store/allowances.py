"""What a tenant may spend in a unit. An allowance's held and charged are the sums over its tenant's dispatches, from its first instant on.

So one that begins is added up while nobody can write a dispatch: a writer either committed before the sums were read, or starts after
them and finds the row. Another limit for an allowance that there is locks that row alone. What waits is due again in the same transaction.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, LiteralString

import psycopg

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.store.db import WARNED, Database, Row, Trouble, connect, trouble
from coatcheck.store.failures import meaning
from coatcheck.store.statements import statement

LOCK_WAIT_S: Final = 5
"""How long the first limit of a tenant waits for the writers under way; marks and replies that come meanwhile queue behind it."""
PAGE: Final = 500
"""Allowances a list asks for at a time."""
_FIRST: Final = ("", "")
_PATIENCE: LiteralString = "select set_config('lock_timeout', %(lock_timeout)s, true)"
_ALONE: LiteralString = "lock table coatcheck.dispatches in share row exclusive mode"

_Connection = psycopg.AsyncConnection[Row]


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


async def set_allowance(url: str, *, tenant_id: str, unit: str, limit: Decimal | None, actor: str) -> Allowance:
    """Set a limit, None for counting without one, and let what waits for the allowance try again. Repeating it is harmless.

        await set_allowance(url, tenant_id="t1", unit="credits", limit=Decimal(10), actor="ada")

    Raises `Unavailable` where nothing changed and `CommitUnknown` where nobody saw whether it did.
    """
    warned: list[str] = []
    async with await connect(url, "allowance") as connection:
        connection.add_notice_handler(lambda notice: warned.append(notice.sqlstate or ""))
        # each statement sees what was committed before it began, whatever the database's own default is
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        try:
            async with connection.transaction():
                found = await _set(connection, tenant_id, unit, limit, actor)
        except psycopg.Error as error:
            raise _told(error) from None
    if WARNED in warned:
        message = "the server committed locally and warned that a standby may not have it"
        raise CommitUnknown(
            message, next="look at `coatcheck allowance show`; setting the same limit again is harmless"
        )
    return found


async def list_allowances(
    database: Database, *, tenant_id: str | None = None, unit: str | None = None
) -> AsyncIterator[Allowance]:
    """Every allowance of the tenant and the unit, by these two; without one of them, of all.

    async for allowance in list_allowances(database, tenant_id="t1"):
        ...
    """
    after = _FIRST
    while True:
        rows = await database.fetch(*_page(after, tenant_id, unit), prepare=False)
        for row in rows:
            yield Allowance(**row)
        if len(rows) < PAGE:
            return
        after = (rows[-1]["tenant_id"], rows[-1]["unit"])


async def _set(connection: _Connection, tenant_id: str, unit: str, limit: Decimal | None, actor: str) -> Allowance:
    wish = {"tenant_id": tenant_id, "unit": unit, "ceiling": limit, "actor": actor}
    await connection.execute(_PATIENCE, {"lock_timeout": f"{LOCK_WAIT_S}s"})
    changed = await connection.execute(statement("store", "change_allowance"), wish)
    if not changed.rowcount:
        await connection.execute(_ALONE)
        await connection.execute(statement("store", "open_allowance"), wish)
    # a statement of its own, so that it sees what every mark left behind that was judged by the former limit
    await connection.execute(statement("store", "wake_allowance"), {"tenant_id": tenant_id, "unit": unit})
    listed = await connection.execute(*_page(_FIRST, tenant_id, unit))
    (row,) = await listed.fetchall()
    return Allowance(**row)


def _page(after: tuple[str, str], tenant_id: str | None, unit: str | None) -> tuple[str, Row]:
    place: Row = {"after_tenant": after[0], "after_unit": after[1], "size": PAGE}
    return statement("store", "list_allowances"), {**place, "tenant_id": tenant_id, "unit": unit}


def _told(error: psycopg.Error) -> Exception:
    if trouble(error) is Trouble.LOCKED:
        return Unavailable(
            f"expected the writers of dispatches to end within {LOCK_WAIT_S} s, got one that did not",
            next="try again; whoever holds a lock on coatcheck.dispatches for so long is in pg_stat_activity",
        )
    return meaning(error)
