"""One seed's draws: which tenant, how long, what a POST looked like, what an application asks for."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import DispatchId, Operation, RemoteJobId
from memory.tables import Row, Tables

Item = TypeVar("Item")
TENANTS = ("t1", "t2", "t3")
ACCOUNTS = {"genace": "genace", "second": "genace", "other": "other"}
"""Configured names and their accounts: two names share one."""
JOBS = tuple(RemoteJobId(f"job-{number}") for number in range(1, 13))
_STATUSES = (None, 201, 400, 401, 402, 403, 403, 403, 403, 403, 429, 500)
_NONSENSE: tuple[dict[str, Any], ...] = (
    {"v": 2},
    {"tenant_id": ""},
    {"operation_key": "k" * 256},
    {"provider": "Genace"},
    {"specification_text": "{"},
    {"estimate": -1},
    {"estimate": "1e3"},
    {"unit": ""},
    {"priority": 10000},
    {"priority": "1"},
    {"not_before_at": "tomorrow"},
    {"dispatch_by_at": "2027-02-30T00:00:00Z"},
    {"colour": "red", "angle": 1},
)


class Chances:
    """One seed's draws; all that it knows of the stores is what the memory holds."""

    def __init__(self, seed: int, tables: Tables) -> None:
        self.random = random.Random(seed)
        self.tables = tables
        self._drawn = 0

    def one_in(self, number: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(number) == 0

    def pick(self, items: Sequence[Item]) -> Item:
        """One of them."""
        return self.random.choice(items)

    def some(self, items: Sequence[Item], most: int) -> list[Item]:
        """From one to so many of them, if there are any."""
        return self.random.sample(items, min(len(items), self.random.randint(1, most)))

    def number(self) -> int:
        """Another one each time."""
        self._drawn += 1
        return self._drawn

    def seconds(self, *scales: float) -> float:
        """A span about one of these, never the same twice."""
        return round(self.pick(scales) * self.random.uniform(0.5, 1.5), 3) + self.number() * 1e-6

    def dispatch_id(self) -> DispatchId:
        """A fresh one."""
        return DispatchId(UUID(int=(1 << 100) + self.number()))

    def request(self) -> dict[str, Any]:
        """An application's wish, now and then one that is refused."""
        request: dict[str, Any] = {
            "v": 1,
            "tenant_id": self.pick(TENANTS),
            "operation_key": f"k{self.random.randrange(12)}",
            "provider": self.pick((*ACCOUNTS, "genace", "elsewhere")),
            "specification_text": self.pick(('{"p":1}', '{"p":1}', '{"p":1}', '{"p":2}')),
            "estimate": self.pick((None, 1, 1, "2.5", 0)),
            "unit": self.pick((None, None, None, None, "tokens")),
            "priority": self.pick((None, 0, 0, 1, -1)),
        }
        if self.one_in(6):
            request["not_before_at"] = self._instant(self.seconds(-10, 10))
        if self.one_in(4):
            request["dispatch_by_at"] = self._instant(self.seconds(-10, 20, 60, 600))
        if self.one_in(15):
            request |= self.pick(_NONSENSE)
        return request

    def _instant(self, seconds: float) -> str:
        return (self.tables.now() + timedelta(seconds=seconds)).isoformat()

    def dispatches(self, operation: Operation) -> list[Row]:
        """The dispatches of an operation."""
        return self.tables.dispatches.of(operation.operation_id)

    def exchange(self) -> Exchange:
        """How far a POST got."""
        return Exchange(
            stage=self.pick(tuple(Stage)),
            bytes_sent=self.random.randrange(500),
            bytes_received=self.random.randrange(500),
            status=self.pick(_STATUSES),
            marks_ms=((Stage.CONNECTED, self.random.randrange(50)),),
        )
