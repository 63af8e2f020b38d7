"""Data on stdout. JSON is ASCII, one object on a line, so no terminal, pipe or locale can garble it.

Amounts are JSON numbers, which is what people compute with; one that a double would change is written as text instead, and so is an integer
that JavaScript would round.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

_SAFE_INTEGER = 2**53 - 1


def write_object(value: Mapping[str, object]) -> None:
    """One object on a line of its own."""
    sys.stdout.write(json.dumps(plain(value), allow_nan=False) + "\n")


def write_line(text: str) -> None:
    """One line for people."""
    sys.stdout.write(text + "\n")


def say(text: str) -> None:
    """Talk goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def plain(value: object) -> object:
    """The value in JSON's own types."""
    match value:
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case Decimal():
            return _number(value)
        case bool() | str() | None:
            return value
        case int():
            return value if abs(value) <= _SAFE_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return value.astimezone(UTC).isoformat()
        case UUID():
            return str(value)
        case bytes():
            return value.hex()
        case Iterable():
            return [plain(each) for each in value]
        case _:
            raise TypeError(f"no JSON form for {type(value).__name__}")


def _number(amount: Decimal) -> object:
    if amount == amount.to_integral_value():
        return plain(int(amount))
    return float(amount) if Decimal(repr(float(amount))) == amount else f"{amount:f}"
