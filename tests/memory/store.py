"""A store in memory that answers every statement of the worker as PostgreSQL does, one statement at a time and each as a whole.

The cut is at `coatcheck.store.db.Database`: a statement is known by its text and carried out by a function over plain tables. There is no
concurrency inside a statement, so the locks of the SQL need no counterpart; everything that is committed is in `tables`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any


class Memory:
    """The tables of one installation, and what is done to them.

    `now` is what both `coatcheck.due_now()` and `coatcheck.lease_now()` answer. Example:

        memory = Memory(clock.now)
        memory.enqueue({"v": 1, "tenant_id": "t1", "operation_key": "k1", "provider": "genace", "specification_text": "{}"})
        rows = await MemoryDatabase(memory).fetch(statement("store", "load"), {"operation_id": [...]})
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def enqueue(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What `coatcheck.enqueue_v1` does and answers: `result`, `operation_id` (op_…), `revision`, `phase`, `specification_hash`."""
        raise NotImplementedError

    def run(self, text: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Carry out one statement as a whole or not at all. Raises what PostgreSQL would raise, and `LookupError` for an unknown one."""
        raise NotImplementedError

    def on_notify(self, hear: Callable[[], None]) -> None:
        """Call `hear` whenever a statement notifies the channel `coatcheck`."""
        raise NotImplementedError

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """A copy of all tables by name, each in the order of its key: equal states are equal values."""
        raise NotImplementedError

    def digest(self) -> str:
        """A hash of `snapshot()`, the same in every process."""
        raise NotImplementedError
