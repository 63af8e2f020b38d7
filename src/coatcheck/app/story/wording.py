"""Instants, spans, amounts and other people's text as words. Nothing that others wrote comes out of here unquoted or unprintable."""

import math
import shlex
from datetime import UTC, datetime
from decimal import Decimal

from coatcheck.app.visible import visible

_UNITS = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"))


def instant(at: datetime, now: datetime) -> str:
    """`2026-11-29 12:00:00 UTC (4 minutes ago)`, or how long until then."""
    away_s = (at - now).total_seconds()
    distance = "now" if abs(away_s) < 1 else f"in {span(away_s)}" if away_s > 0 else f"{span(-away_s)} ago"
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({distance})"


def span(length_s: float) -> str:
    """A duration in the unit that a person would take, never shorter than it is: `span(130)` is `3 minutes`."""
    for least_s, unit_s, name in _UNITS:
        if length_s >= least_s:
            return f"{math.ceil(length_s / unit_s)} {name}"
    whole = math.ceil(length_s)
    return f"{whole} second{'' if whole == 1 else 's'}"


def quoted(text: str, limit: int = 200) -> str:
    """Somebody's text in quotation marks, on one line, shortened, with what does not print written out."""
    shown = visible(text[:limit]).replace('"', '\\"')
    more = len(text) - limit
    return f'"{shown}"' if more <= 0 else f'"{shown}…" (and {more} more characters)'


def text_of(reply: bytes) -> str:
    """A reply's bytes as text; what is no UTF-8 is written out."""
    return bytes(reply).decode("utf-8", "backslashreplace")


def amount(value: Decimal, unit: str) -> str:
    """`5 credits`, without zeros that say nothing."""
    plain = f"{value:f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return f"{plain} {visible(unit)}"


def count(number: int, noun: str, ending: str = "s") -> str:
    """`1 byte`, `2 bytes`."""
    return f"{number} {noun}{'' if number == 1 else ending}"


def word(text: str, placeholder: str) -> str:
    """`text` as one word of a command to copy; the placeholder where it would be taken for an option or does not print."""
    return shlex.quote(text) if text.isprintable() and not text.startswith("-") else placeholder
