"""One connection over a `Memory`, with the interface and the manners of `coatcheck.store.db.Database`.

What goes wrong comes from two hooks, awaited with the statement's name (as `store/mark`) before and after its effect. A hook that raises
`psycopg.OperationalError` is a connection that broke: before the effect nothing is committed, after it the answer is lost, and either way
the caller gets `CommitUnknown`, as production does. `Unavailable` from `before` is a server that could not be reached at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import psycopg

from coatcheck.errors import CommitUnknown
from coatcheck.store.db import Database, Plan, Row
from memory.store import Memory, named

Hook = Callable[[str], Awaitable[None]]


class MemoryDatabase(Database):
    """A connection that is there at once; one statement at a time.

    Example: `Door(MemoryDatabase(memory, before=delays.before), "worker-1")`.
    """

    def __init__(self, memory: Memory, *, before: Hook | None = None, after: Hook | None = None) -> None:
        self._memory = memory
        self._before = before
        self._after_effect = after
        self._turn = asyncio.Lock()

    async def fetch(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        plan: Plan = Plan.AUTO,
    ) -> Sequence[Row]:
        """Run one statement in its own transaction."""
        name = named(text)
        async with self._turn:
            try:
                if self._before is not None:
                    await self._before(name)
                rows = self._memory.run(text, parameters or {})
                if self._after_effect is not None:
                    await self._after_effect(name)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if error.sqlstate is not None:
                    raise
                raise CommitUnknown(
                    "the connection to PostgreSQL broke during a statement", next="It is looked for."
                ) from error
        return rows

    async def outlast(self) -> None:
        """Nothing is carried out after its connection broke, so nothing is waited for."""

    async def close(self) -> None:
        """There is nothing to close; a later statement runs as before."""
