"""The tables as plain values: a row is replaced and never changed, so a copy of a table is a copy of its dictionary.

A statement that fails leaves nothing behind: every replaced row is in the journal until the statement's end, and is put back from there.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from memory.checks import CHECKS
from memory.columns import COLUMNS, KEYS, NULLABLE, REQUIRED, UNIQUE

Row = dict[str, Any]
Key = Any
Place = tuple[str, int, int]
"""The cluster, its timeline and the table itself, as `coatcheck.whereabouts()` tells them."""
Journal = list[tuple["Table", Key, Row | None]]


class Table:
    """Rows by their primary key, which is bare where it is one column and a tuple where it is more."""

    def __init__(self, name: str, tables: "Tables") -> None:
        self.name = name
        self.rows: dict[Key, Row] = {}
        self._key = KEYS[name]
        self._defaults = COLUMNS[name]
        self._checks = tuple(CHECKS.get(name, {}).items())
        self._unique = tuple(UNIQUE.get(name, {}).items())
        self._tables = tables

    def __iter__(self) -> Iterator[Row]:
        return iter(list(self.rows.values()))

    def get(self, key: Key) -> Row | None:
        """The row of this key."""
        return self.rows.get(key)

    def of(self, operation_id: UUID) -> list[Row]:
        """The rows of one operation, in the order of their keys."""
        found = [row for row in self.rows.values() if row["operation_id"] == operation_id]
        return sorted(found, key=self.key)

    def key(self, row: Mapping[str, Any]) -> Key:
        """The primary key of a row."""
        return row[self._key[0]] if len(self._key) == 1 else tuple(row[name] for name in self._key)

    def insert(self, **values: Any) -> Row:
        """A new row with the defaults of what is not given. Raises what PostgreSQL raises for a constraint."""
        unknown = values.keys() - self._defaults.keys()
        assert not unknown, f"{self.name} has no {unknown}"
        row = {**self._defaults, **values}
        key = self.key(row)
        if key in self.rows:
            raise psycopg.errors.UniqueViolation(f"{self.name}_pkey")
        self._put(key, row, values=row, before=None)
        return row

    def change(self, key: Key, **values: Any) -> Row:
        """The row with other values in it."""
        unknown = values.keys() - self._defaults.keys()
        assert not unknown, f"{self.name} has no {unknown}"
        before = self.rows[key]
        row = {**before, **values}
        self._put(key, row, values=values, before=before)
        return row

    def drop(self, key: Key) -> None:
        """Take a row out."""
        self._replaced(key, self.rows.pop(key))

    def _put(self, key: Key, row: Row, *, values: Row, before: Row | None) -> None:
        """`values` are the new ones in it: what stands there already was looked at when it came."""
        for name, value in values.items():
            if value is REQUIRED or (value is None and self._defaults[name] is not None and name not in NULLABLE):
                raise psycopg.errors.NotNullViolation(f"{self.name}.{name}")
        for constraint, holds in self._checks:
            if not holds(row):
                raise psycopg.errors.CheckViolation(constraint)
        for constraint, (columns, among) in self._unique:
            wanted = [row[name] for name in columns]
            if not among(row) or (
                before is not None and among(before) and [before[name] for name in columns] == wanted
            ):
                continue
            if any(
                [other[name] for name in columns] == wanted and among(other) and self.key(other) != key
                for other in self.rows.values()
            ):
                raise psycopg.errors.UniqueViolation(constraint)
        self._replaced(key, before)
        self.rows[key] = row

    def _replaced(self, key: Key, row: Row | None) -> None:
        self._tables.journal.append((self, key, row))
        self._tables.change_count += 1


class Tables:
    """All tables of one installation, its clock, its fencing tokens, and where it lies."""

    def __init__(
        self, now: Callable[[], datetime], new_id: Callable[[], UUID], session_user: str, place: Place
    ) -> None:
        self.journal: Journal = []
        self.now = now
        self.new_id = new_id
        self.session_user = session_user
        self.token = 0
        self.place = place
        self.notified = False
        self.change_count = 0
        """How many rows were ever replaced: as long as it stays, nothing was written."""
        for name in KEYS:
            setattr(self, name, Table(name, self))

    operations: Table
    specifications: Table
    outbox: Table
    dispatches: Table
    remote_jobs: Table
    snapshots: Table
    deliveries: Table
    history: Table
    incidents: Table
    providers: Table
    accounts: Table
    allowances: Table
    workers: Table
    wake_ups: Table
    installation: Table

    def all(self) -> dict[str, Table]:
        """The tables by name."""
        return {name: getattr(self, name) for name in KEYS}

    def next_token(self) -> int:
        """A later lease always carries a larger one; like a sequence it is not given back."""
        self.token += 1
        return self.token

    def notify(self) -> None:
        """Once this statement is done, whoever listens hears of it."""
        self.notified = True

    def undo(self) -> None:
        """Put back what the present statement replaced."""
        for table, key, row in reversed(self.journal):
            if row is None:
                del table.rows[key]
            else:
                table.rows[key] = row
        self.journal.clear()
        self.notified = False


def after(at: datetime, seconds: float | None) -> datetime:
    """`at + make_interval(secs => seconds)`, rounded to the microsecond as PostgreSQL rounds."""
    assert seconds is not None
    return at + timedelta(microseconds=round(seconds * 1e6))


def later(*instants: datetime | None) -> datetime | None:
    """`greatest(…)`, which passes nulls by."""
    return max((instant for instant in instants if instant is not None), default=None)


def seconds(span: timedelta) -> float:
    """`extract(epoch from …)`."""
    return span.total_seconds()


def listed(parameters: Mapping[str, Any], *names: str) -> list[Row]:
    """`unnest(…) with ordinality`: the arrays of a batch as rows, each with its position from 1 on."""
    columns = [parameters[name] for name in names]
    return [
        {**dict(zip(names, values, strict=True)), "position": position}
        for position, values in enumerate(zip(*columns, strict=True), 1)
    ]
