"""The head of a request, each line of it checked by h11, and kept: request after request of an account has the same lines.

Where a service repeats our reference, each POST has one line of its own, and h11 looks at that one alone.
"""

from functools import lru_cache
from typing import Final

import h11

from coatcheck.provider.origin import Origin

_LINES: Final = 512
"""Lines that are kept. An account has six or so in use; a reference, which is sent once, pushes out whatever was not sent for longest."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_ANYBODY: Final = ("Host", "any")


def fields(origin: Origin, headers: tuple[tuple[str, str], ...], *, is_last: bool) -> bytes:
    """The header lines, without the empty one that ends them; `is_last` of who sends nothing more over this connection.

    Raises ValueError for what h11 does not write, and for headers that frame a body: whoever sends one counts it.
    `fields(origin, request.headers, is_last=True)`
    """
    lines = [_host_line(origin.authority), *[_line(name, value) for name, value in headers]]
    if is_last:
        lines.append(_line("Connection", "close"))
    return b"".join(lines)


@lru_cache(maxsize=_LINES)
def _line(name: str, value: str) -> bytes:
    if name.lower() in _FRAMING:
        raise ValueError("expected a body that is framed by its length alone")
    # h11 wants one Host in a request, and no second one
    return _checked(_ANYBODY, (name, value))


@lru_cache(maxsize=_LINES)
def _host_line(authority: str) -> bytes:
    return _checked(("Host", authority))


def _checked(*headers: tuple[str, str]) -> bytes:
    """The last one of them, as h11 writes it."""
    try:
        request = h11.Request(method="GET", target="/", headers=list(headers))
    except (h11.LocalProtocolError, UnicodeEncodeError):
        raise ValueError("expected headers that HTTP/1.1 can carry") from None
    return b"%b: %b\r\n" % request.headers.raw_items()[-1]
