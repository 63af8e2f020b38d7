"""Instants as people type them: with an offset, so that nobody's time zone is guessed, or a date for its beginning in UTC."""

import re
from datetime import datetime

from coatcheck.errors import Refused

_DAY = r"\d{4}-\d{2}-\d{2}"


def instant_of(name: str, text: str) -> datetime:
    """An instant with its offset, or the beginning of a day in UTC: `instant_of("--since", "2026-01-31")`. Raises `Refused`."""
    try:
        found = datetime.fromisoformat(f"{text}T00:00:00Z" if re.fullmatch(_DAY, text, re.ASCII) else text)
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise Refused(
            f"{name}: expected an instant in ISO 8601 with an offset, or a date, got {text!a}",
            next=f"give {name} 2026-01-31T12:00:00Z, or {name} 2026-01-31 for the beginning of that day in UTC",
        )
    return found
