"""Data on stdout. JSON is ASCII, one object on a line, so no terminal, pipe or locale can garble it.

Amounts are JSON numbers, which is what people compute with; one that a double would change is written as text instead, and so is an integer
that JavaScript would round.
"""

import json
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import singledispatch
from uuid import UUID

_SAFE_INTEGER = 2**53 - 1


def write_object(value: Mapping[str, object]) -> None:
    """One object on a line of its own."""
    sys.stdout.write(json.dumps(plain(value), allow_nan=False) + "\n")


def write_line(text: str) -> None:
    """One line for people."""
    sys.stdout.write(text + "\n")


def flush() -> None:
    """Let whoever reads along have what was written."""
    sys.stdout.flush()


def say(text: str) -> None:
    """Talk goes to stderr. Whoever hung up there misses it, and what is talked about goes on, as with a log."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


@singledispatch
def plain(value: object) -> object:
    """The value in JSON's own types."""
    raise TypeError(f"no JSON form for {type(value).__name__}")


@plain.register(str | bool | None)
def _same(value: object) -> object:
    return value


@plain.register
def _whole(value: int) -> object:
    return value if abs(value) <= _SAFE_INTEGER else str(value)


@plain.register
def _real(value: float) -> object:
    return value if math.isfinite(value) else None


@plain.register
def _amount(value: Decimal) -> object:
    if value == value.to_integral_value():
        return plain(int(value))
    return float(value) if Decimal(repr(float(value))) == value else f"{value:f}"


@plain.register
def _instant(value: datetime) -> object:
    return value.astimezone(UTC).isoformat()


@plain.register
def _id(value: UUID) -> object:
    return str(value)


@plain.register(Mapping)
def _object(value: Mapping[object, object]) -> object:
    return {str(name): plain(each) for name, each in value.items()}


@plain.register(list | tuple)
def _array(value: list[object] | tuple[object, ...]) -> object:
    return [plain(each) for each in value]
