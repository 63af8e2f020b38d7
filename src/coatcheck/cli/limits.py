"""Limits as people type and read them: a count, a rate a second, a number of seconds, or the word none."""

import math

from coatcheck.cli.amounts import NONE
from coatcheck.errors import Refused

_MOST = 1_000_000
_LEAST_RATE = 0.001


def count_or_none(name: str, text: str, *, least: int) -> int | None:
    """A whole number from `least` to a million, or None for the word none. Raises `Refused`: `count_or_none("--max-in-flight", "8", least=0)`."""
    if text == NONE:
        return None
    if not text.isdecimal() or not text.isascii() or not least <= int(text[:20]) <= _MOST:
        raise _refused(name, f"a whole number from {least} to {_MOST}", text)
    return int(text)


def rate_or_none(name: str, text: str) -> float | None:
    """So many a second, from one in a thousand seconds to a million, or None for the word none. Raises `Refused`."""
    return _number_or_none(name, text, least=_LEAST_RATE)


def seconds_or_none(name: str, text: str) -> float | None:
    """Seconds from 0 to a million, or None for the word none. Raises `Refused`."""
    return _number_or_none(name, text, least=0.0)


def measure(limit: float | None) -> str | None:
    """A limit as short as it was typed: `measure(0.5)` is 0.5, `measure(8.0)` is 8."""
    return None if limit is None else f"{limit:g}"


def _number_or_none(name: str, text: str, *, least: float) -> float | None:
    if text == NONE:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not least <= found <= _MOST:
        raise _refused(name, f"a number from {least:g} to {_MOST}", text)
    return found


def _refused(name: str, expected: str, text: str) -> Refused:
    return Refused(f"{name}: expected {expected} or {NONE}, got {text!a}", next=f"give {name} a number, or {NONE}")
