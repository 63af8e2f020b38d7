"""A store in memory that answers every statement of the worker as PostgreSQL does, one statement at a time and each as a whole.

The cut is at `coatcheck.store.db.Database`: a statement is known by its text and carried out by a function over plain tables. There is no
concurrency inside a statement, so the locks of the SQL need no counterpart; everything that is committed is in `tables`.
"""

import enum
import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from memory.enqueue import enqueue
from memory.statements import EFFECTS, OUT_OF_SCOPE, names
from memory.tables import Place, Row, Tables

Answer = TypeVar("Answer")
_NEVER = datetime.min.replace(tzinfo=UTC)


class Memory:
    """The tables of one installation, and what is done to them.

    `now` is what both `coatcheck.due_now()` and `coatcheck.lease_now()` answer. Example:

        memory = Memory(clock.now)
        memory.enqueue({"v": 1, "tenant_id": "t1", "operation_key": "k1", "provider": "genace", "specification_text": "{}"})
        rows = await MemoryDatabase(memory).fetch(statement("store", "load"), {"operation_id": [...]})

    `new_id` makes the ids of operations; without it they are time-ordered and count up, so that a run is repeated by its seed. `tables.place`
    is where the database lies now: another value is a server that was restored or promoted.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        new_id: Callable[[], UUID] | None = None,
        session_user: str = "application",
        place: Place = ("7000000000000000001", 1, 16384),
        installation_id: UUID | None = None,
    ) -> None:
        self._ears: list[Callable[[], None]] = []
        self._made = 0
        self.tables = Tables(now, new_id or self._new_id, session_user, place)
        self.tables.wake_ups.insert(sleeping_until=_NEVER)
        here = dict(zip(("system_identifier", "timeline", "made_as"), place, strict=True))
        self.tables.installation.insert(installation_id=installation_id or UUID(int=1), **here)
        self.tables.journal.clear()

    def enqueue(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What `coatcheck.enqueue_v1` does and answers: `result`, `operation_id` (op_…), `revision`, `phase`, `specification_hash`."""
        return self._whole(lambda: enqueue(self.tables, request))

    def run(self, text: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Carry out one statement as a whole or not at all. Raises what PostgreSQL would raise, and `LookupError` for an unknown one."""
        name = named(text)
        effect = EFFECTS.get(name)
        if effect is None:
            raise LookupError(f"{name} is not carried out in memory: {OUT_OF_SCOPE.get(name, 'nobody wrote it yet')}")
        plain = {key: _plain(value) for key, value in parameters.items()}
        return self._whole(lambda: effect(self.tables, plain))

    def on_notify(self, hear: Callable[[], None]) -> None:
        """Call `hear` whenever a statement notifies the channel `coatcheck`."""
        self._ears.append(hear)

    def snapshot(self) -> dict[str, list[Row]]:
        """A copy of all tables by name, each in the order of its key: equal states are equal values."""
        return {name: [dict(row) for row in sorted(table, key=table.key)] for name, table in self.tables.all().items()}

    def digest(self) -> str:
        """A hash of `snapshot()`, the same in every process."""
        told = [
            (name, [sorted((column, str(value)) for column, value in row.items()) for row in rows])
            for name, rows in self.snapshot().items()
        ]
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def _whole(self, work: Callable[[], Answer]) -> Answer:
        try:
            answer = work()
        except BaseException:
            self.tables.undo()
            raise
        self.tables.journal.clear()
        if self.tables.notified:
            self.tables.notified = False
            for hear in self._ears:
                hear()
        return answer

    def _new_id(self) -> UUID:
        self._made += 1
        milliseconds = int(self.tables.now().timestamp() * 1000)
        return UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | self._made)


def named(text: str) -> str:
    """Which statement a text is, as `named(statement("store", "mark")) == "store/mark"`. Raises `LookupError`."""
    try:
        return names()[text]
    except KeyError:
        raise LookupError(f"no statement of the rooms store and queue: {text[:80]!r}") from None


_AS_IT_IS = frozenset({type(None), int, float, bool, UUID, datetime, bytes})


def _plain(value: Any) -> Any:
    """A value as it comes back from the database: words of ours are text there. Raises what the driver raises for no text at all."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is str:
        if not value.isascii():
            value.encode()
        if "\0" in value:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return value
    if kind is list or kind is tuple:
        return [each if type(each) in _AS_IT_IS else _plain(each) for each in value]
    return _plain(value.value) if isinstance(value, enum.Enum) else value
