"""How two stores' rows are compared: what must be equal is equal, and a difference is told by table, key and column."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memory.columns import KEYS

Row = Mapping[str, Any]
State = Mapping[str, Sequence[Row]]

_ORDER = ("operation_id", "lane", "kind", "output_index", "account", "remote_job_id", "name")
OPEN = {"lease_token", "spends", "is_doubted"}
"""Columns whose values are each store's own affair, as far as they are compared at all: PostgreSQL derives some from others in the same row."""


class Diverged(AssertionError):
    """The two stores gave different answers, or were left in different states."""


def compared(value: Any) -> Any:
    """A value in the form in which it is compared: rates to the microsecond, arrays of JSON whatever their Python type."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list | tuple):
        return [compared(each) for each in value]
    return value


def difference(memory: State, postgresql: State) -> str | None:
    """The first difference, None where there is none."""
    for table, key in KEYS.items():
        ours, theirs = _by_key(key, memory[table]), _by_key(key, postgresql[table])
        if ours.keys() != theirs.keys():
            return f"{table}: memory alone has {ours.keys() - theirs.keys()}, PostgreSQL alone {theirs.keys() - ours.keys()}"
        for each, row in ours.items():
            other = theirs[each]
            if row != other and (told := _columns(_shown(row), _shown(other))):
                return f"{table} {each}: {told}"
    return None


def answers_differ(memory: Sequence[Row], postgresql: Sequence[Row]) -> str | None:
    """The same for the rows of an answer, whose order says nothing."""
    if len(memory) != len(postgresql):
        return f"memory answers {len(memory)} rows, PostgreSQL {len(postgresql)}"
    for ours, theirs in zip(_sorted(memory), _sorted(postgresql), strict=True):
        if ours != theirs:
            return _columns(ours, theirs)
    return None


def _by_key(key: Sequence[str], rows: Sequence[Row]) -> dict[Any, Row]:
    return {tuple(row[name] for name in key): row for row in rows}


def _shown(row: Row) -> Row:
    return {name: compared(value) for name, value in row.items() if name not in OPEN}


def _sorted(rows: Sequence[Row]) -> list[Row]:
    shown = [_shown(row) for row in rows]
    return sorted(shown, key=lambda row: str([row.get(name) for name in _ORDER]))


def _columns(ours: Row, theirs: Row) -> str:
    names = [name for name in {**ours, **theirs} if ours.get(name, "absent") != theirs.get(name, "absent")]
    told = [
        f"{name} {ours.get(name, 'absent')!r} in memory, {theirs.get(name, 'absent')!r} in PostgreSQL" for name in names
    ]
    return "; ".join(told)


NEVER = datetime.min.replace(tzinfo=UTC)
"""Stands for minus infinity, which Python has no instant for."""
