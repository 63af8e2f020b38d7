"""Reading JSON that a foreign service wrote: either one unambiguous value comes out, or a word that says why not. Never an exception.

A text that two readers could understand differently (duplicate keys, NaN, broken UTF-8) is no evidence of anything.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from coatcheck.core.operation import RemoteJobId

ID_LIMIT: Final = 512
"""Characters of the longest remote id that is believed."""

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and lone surrogates: neither survives a log line, a URL or a PostgreSQL text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why a body is no usable JSON: empty, not_utf8, not_json, duplicate_key, not_finite, too_deep."""

    cause: str


class _AmbiguousError(ValueError):
    """Valid to a lenient reader only. The argument is the cause."""


def read_json(body: bytes) -> object:
    """The value of a JSON text, or `Unreadable`. Fractions become `Decimal`, so that money survives: `read_json(b'{"a": 0.1}')`."""
    if not body.strip():
        return Unreadable(cause="empty")
    try:
        return _STRICT.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Unreadable(cause="not_utf8")
    except _AmbiguousError as ambiguity:
        return Unreadable(cause=str(ambiguity))
    except RecursionError:
        return Unreadable(cause="too_deep")
    except (ValueError, ArithmeticError):
        return Unreadable(cause="not_json")


def _unambiguous(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise _AmbiguousError("duplicate_key")
        found[name] = value
    return found


def _refuse_constant(_: str) -> object:
    raise _AmbiguousError("not_finite")


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_unambiguous, parse_constant=_refuse_constant, parse_float=Decimal)
"""`json.loads` would make such a decoder for each text."""


def at(value: object, path: Iterable[str]) -> object:
    """What lies at `path` in nested objects; None where there is nothing: `at({"error": {"job_id": "a"}}, ("error", "job_id"))`."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def plain_text(value: object, limit: int) -> str | None:
    """`value` if it is a string of 1 to `limit` characters without control characters and lone surrogates, else None."""
    if not isinstance(value, str) or not 0 < len(value) <= limit:
        return None
    return None if _UNPRINTABLE.search(value) else value


def usable_id(value: object) -> RemoteJobId | None:
    """The remote id, if it can be saved, shown and asked for again; else None."""
    text = plain_text(value, ID_LIMIT)
    return None if text is None else RemoteJobId(text)
