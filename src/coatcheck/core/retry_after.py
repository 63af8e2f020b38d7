"""`Retry-After` as seconds from now: both forms of RFC 9110, clamped, and harmless when it is wrong."""

import re
from datetime import UTC, datetime
from typing import Final

_SECONDS: Final = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_TIME: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES: Final = (
    re.compile(
        rf"[A-Z][a-z]+, (?P<day>[0-9]{{2}})[ -](?P<month>[A-Z][a-z]{{2}})[ -](?P<year>[0-9]{{2,4}}) {_TIME} GMT"
    ),
    re.compile(rf"[A-Z][a-z]+ (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CENTURY_TURN: Final = 70


def retry_after_s(value: str | None, *, now: datetime, cap_s: float) -> float | None:
    """Seconds in [0, `cap_s`], or None when no delay can be read: `retry_after_s("120", now=now, cap_s=300)`."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), cap_s)
    instant = _date(text)
    return None if instant is None else min(max(0.0, (instant - now).total_seconds()), cap_s)


def _date(text: str) -> datetime | None:
    found = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if found is None or found["month"] not in _MONTHS:
        return None
    year = int(found["year"])
    if len(found["year"]) == len("94"):
        year += 1900 if year >= _CENTURY_TURN else 2000
    try:
        return datetime(
            year,
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            int(found["second"]),
            tzinfo=UTC,
        )
    except ValueError:
        return None
