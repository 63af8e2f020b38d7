"""Bodies that are not what they should be: one function for each form of `malformed`, for create replies and for snapshots alike."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from coatcheck.sim.replies import Plain, Reply, html_reply

HUGE_BYTES = 10_000_000
DEPTH = 100_000


def malformed_reply(status: int, form: str, key: str, good: Mapping[str, Any]) -> Reply:
    """`good` (whose id stands under `key`) spoiled in the way of `form`."""
    if form == "html":
        return html_reply(status)
    return Reply(status=status, content_type="application/json", content=Plain(_FORMS[form](key, good)))


def _dumped(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _with(value: object) -> Callable[[str, Mapping[str, Any]], bytes]:
    return lambda key, good: _dumped({**good, key: value})


def _twice(key: str, good: Mapping[str, Any]) -> bytes:
    """The same key with two values: which one counts depends on the reader."""
    return b"{" + _dumped(key) + b":" + _dumped(f"{good[key]}-other") + b"," + _dumped(dict(good))[1:]


_FORMS: Mapping[str, Callable[[str, Mapping[str, Any]], bytes]] = {
    "invalid_json": lambda key, good: b"{" + key.encode() + b": '" + str(good[key]).encode() + b"',}",
    "truncated_json": lambda _, good: _dumped(dict(good))[:-1],
    "no_id": lambda key, good: _dumped({name: value for name, value in good.items() if name != key}),
    "id_number": _with(12345),
    "id_null": _with(None),
    "id_empty": _with(""),
    "id_huge": _with("j" * HUGE_BYTES),
    "id_control": lambda key, good: _dumped({**good, key: f"{good[key]}\r\nX: y\x00"}),
    "id_surrogate": lambda key, good: _dumped({**good, key: f"{good[key]}\ud800"}),
    "duplicate_keys": _twice,
    "array": lambda _, good: _dumped([dict(good)]),
    "not_utf8": lambda key, good: _dumped({**good, key: "@"}).replace(b"@", b"\xff\xfe\xc0"),
    "deep": lambda *_: b"[" * DEPTH + b"]" * DEPTH,
}
