"""Batches that do not depend on time: what a worker saves waits until everything that it has in hand has come as far.

So the same queue makes the same statements on a quick machine and on a slow one, but for the first of a batch, which may go alone. How often
a worker asks in vain depends on time all the same: of claims, only those count that bring something.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from coatcheck.bench.witness import Counted, Tally
from coatcheck.seams import Faults, Point, Seams
from coatcheck.store.db import Database, Plan, Row

GATES = {
    "store/mark": Point.D4_MARK_COMMIT_SENT,
    "store/conclude": Point.D12_SAVE_COMMIT_SENT,
    "store/snapshot": Point.O6_SAVE_COMMIT_SENT,
    "store/deliver": Point.V9_SAVE_COMMIT_SENT,
}
"""The statements that wait, each with the point that an action passes on its way there."""


CLAIM = "queue/claim"


class Gates(Faults, Tally):
    """Counts what was claimed and what has come how far; a statement of the table runs when the two are equal, or, `is_open`, at once."""

    def __init__(self, *, is_open: bool) -> None:
        super().__init__()
        self._is_open = is_open
        self._claimed = 0
        self._passed: Counter[Point] = Counter()
        self._moved = asyncio.Event()

    def reached(self, point: Point, count: int = 0) -> None:
        if point is Point.X1_CLAIMED:
            self._claimed += count
            self.statements[CLAIM] += count > 0
        self._passed[point] += 1
        self._moved.set()

    async def opened_to_all(self, point: Point) -> None:
        """Wait until everybody is here."""
        while not self._is_open and self._passed[point] < self._claimed:
            self._moved.clear()
            await self._moved.wait()

    @asynccontextmanager
    async def opened(self, url: str, *, seams: Seams, name: str) -> AsyncIterator[Database]:
        database = _Gated(self, url, seams=seams, name=name)
        try:
            yield database
        finally:
            await database.close()


class _Gated(Counted):
    def __init__(self, gates: Gates, url: str, *, seams: Seams, name: str) -> None:
        super().__init__(gates, url, seams=seams, name=name)
        self._gates = gates

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        name = self.name_of(text)
        if name in GATES:
            await self._gates.opened_to_all(GATES[name])
        if name == CLAIM:
            self._gates.statements[CLAIM] -= 1
        return await super().fetch(text, parameters, plan=plan)
