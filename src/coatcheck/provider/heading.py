"""The head of a request, checked and written by h11, and kept: but for target and length it is the same for request after request of an account.

Not where a service repeats our reference: there each POST carries a reference of its own, and h11 writes each.
"""

from functools import lru_cache
from typing import Final

import h11

from coatcheck.provider.origin import Origin

_HEADS: Final = 64
"""Heads that are kept. An account whose service repeats nothing needs two: one to post with and one to look with."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_END: Final = b"\r\n"


@lru_cache(maxsize=_HEADS)
def fields(origin: Origin, headers: tuple[tuple[str, str], ...], *, is_last: bool) -> bytes:
    """The header lines, without the empty one that ends them; `is_last` of who sends nothing more over this connection.

    Raises ValueError for what h11 does not write, and for headers that frame a body: whoever sends one counts it.
    `fields(origin, request.headers, is_last=True)`
    """
    if not _FRAMING.isdisjoint(name.lower() for name, _ in headers):
        raise ValueError("expected a body that is framed by its length alone")
    named = [("Host", origin.authority), *headers, *((("Connection", "close"),) if is_last else ())]
    try:
        written = h11.Connection(h11.CLIENT).send(h11.Request(method="GET", target="/", headers=named)) or b""
    except h11.LocalProtocolError:
        raise ValueError("expected headers that HTTP/1.1 can carry") from None
    return written.partition(_END)[2].removesuffix(_END)
