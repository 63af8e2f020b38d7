"""Limits as people type and read them: a count, a rate a second, a number of seconds, or the word none."""

import re
from typing import Final

from coatcheck.cli.amounts import NONE
from coatcheck.errors import Refused

_MOST: Final = 1_000_000
_LEAST_RATE: Final = 0.001
_SHOWN: Final = 40
_WHOLE: Final = re.compile(r"[0-9]{1,9}")
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def count_or_none(name: str, text: str, *, least: int) -> int | None:
    """A whole number from `least` to a million, or None for the word none. Raises `Refused`: `count_or_none("--max-in-flight", "8", least=0)`."""
    if text == NONE:
        return None
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= _MOST:
        raise _refused(name, f"a whole number from {least} to {_MOST}", text)
    return int(text)


def rate_or_none(name: str, text: str) -> float | None:
    """So many a second, from one in a thousand seconds to a million, or None for the word none. Raises `Refused`."""
    return _number_or_none(name, text, least=_LEAST_RATE)


def seconds_or_none(name: str, text: str) -> float | None:
    """Seconds from 0 to a million, or None for the word none. Raises `Refused`."""
    return _number_or_none(name, text, least=0.0)


def measure(limit: float | None) -> str | None:
    """A limit as short as it was typed: `measure(0.5)` is 0.5, `measure(8.0)` is 8, never with an exponent."""
    return None if limit is None else f"{limit:.9f}".rstrip("0").rstrip(".")


def _number_or_none(name: str, text: str, *, least: float) -> float | None:
    if text == NONE:
        return None
    if not _NUMBER.fullmatch(text) or not least <= float(text) <= _MOST:
        raise _refused(name, f"a number from {least:g} to {_MOST}", text)
    return float(text)


def _refused(name: str, expected: str, text: str) -> Refused:
    shown = ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
    return Refused(f"{name}: expected {expected} or {NONE}, got {shown}", next=f"give {name} a number, or {NONE}")
