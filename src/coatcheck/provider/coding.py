"""Undoing a reply's content coding, within a bound. We ask for none; a service that compresses anyway may hold a paid id in there."""

import zlib
from typing import Final

_EITHER_HEADER: Final = 32 + zlib.MAX_WBITS
"""zlib's own word for: tell gzip from zlib by the header."""


def decoded(body: bytes, coding: str | None, *, limit: int) -> bytes | None:
    """The body without its coding, or None if it is unknown, broken, cut, or longer than `limit` bytes: `decoded(body, "gzip", limit=n)`."""
    match (coding or "identity").strip().lower():
        case "identity" | "":
            return body
        case "gzip" | "x-gzip" | "deflate":
            return _inflated(body, limit)
        case _:
            return None


def _inflated(body: bytes, limit: int) -> bytes | None:
    stream = zlib.decompressobj(_EITHER_HEADER)
    try:
        plain = stream.decompress(body, limit + 1)
    except zlib.error:
        return None
    return plain if stream.eof and not stream.unused_data and len(plain) <= limit else None
