"""Reading when something happened by another's clock: one instant in UTC, or None. What could be read in two ways is not read."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM: Final = 10**11
"""As seconds this is the year 5138, as milliseconds 1973: no service means either."""
_ISO: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:?\d{2})", re.ASCII
)
_FINER: Final = re.compile(r"(\.\d{6})\d+")


def read_instant(value: object) -> datetime | None:
    """The instant in ISO 8601 text with an offset, or in seconds or milliseconds since 1970: `read_instant("2026-01-02T03:04:05Z")`.

    None for anything else, an instant without an offset and one outside of 2000 to 2100 among it.
    """
    try:
        found = _from_text(value) if isinstance(value, str) else _from_number(value)
    except (ValueError, ArithmeticError):
        return None
    return found if found is not None and _EARLIEST <= found < _LATEST else None


def _from_text(value: str) -> datetime | None:
    if _ISO.fullmatch(value) is None:
        return None
    return datetime.fromisoformat(_FINER.sub(r"\1", value).upper()).astimezone(UTC)


def _from_number(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    seconds = Decimal(value) / 1000 if value >= _MILLISECONDS_FROM else Decimal(value)
    return _EPOCH + timedelta(microseconds=int(seconds * 1_000_000))
