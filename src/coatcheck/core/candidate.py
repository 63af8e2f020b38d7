"""A remote id that a body shows without proving it: evidence for a person, never an acceptance.

Reads what a JSON reader refuses: a text that was cut, or that is spoiled elsewhere. What counts is a whole string literal at a place where
the service's adapter expects an id; half an id is none, and an id at another place (a parent's, an example's) is not this request's.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from coatcheck.core.foreign import usable_id
from coatcheck.core.operation import RemoteJobId

SCANNED_BYTES: Final = 64 * 1024
"""How much of a body is searched, so that a hostile one costs milliseconds."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,"]', re.DOTALL)
_CLOSES: Final = {b"}": b"{", b"]": b"["}


def candidate_id(body: bytes, places: Sequence[Sequence[str]]) -> RemoteJobId | None:
    """The first usable id at one of `places`: `candidate_id(b'{"job_id":"j-1","sta', [("job_id",)])` is `j-1`. Arrays have no name."""
    opened: list[bytes] = []
    names: list[str | None] = []
    is_value = False
    for found in _TOKEN.finditer(body[:SCANNED_BYTES]):
        match token := found.group():
            case b'"':
                # a string without an end: the rest of the body is its inside
                return None
            case b"{" | b"[":
                opened.append(token)
                names += [None] if token == b"{" else []
                is_value = False
            case b"}" | b"]" if opened and opened[-1] == _CLOSES[token]:
                opened.pop()
                names = names[:-1] if token == b"}" else names
            case b":" | b",":
                is_value = token == b":"
            case _ if not opened or opened[-1] == b"[":
                continue
            case _ if not is_value:
                names[-1] = _text(token)
            case _ if any(list(place) == names for place in places) and (named := usable_id(_text(token))) is not None:
                return named
    return None


def _text(literal: bytes) -> str | None:
    try:
        text = json.loads(literal)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
