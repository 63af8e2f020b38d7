"""Whom a URL names, and what is asked of it. The target goes out as it is written; nothing of a URL is corrected, and no part of it ignored but a fragment.

Errors name the part that is wrong and never quote it: a URL may carry secrets.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_ORIGINS: Final = 64
"""Origins that are kept: each account has one."""
_PORTS: Final = {"http": 80, "https": 443}
_ABSOLUTE: Final = re.compile(r"([A-Za-z]+://[!\"$-.0->@-~]+)([!\"$-~]*)(?:#.*)?")
_EXPECTED: Final = (
    "expected http:// or https://, a host and perhaps a port, a path and a query, all in printable ASCII without spaces"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whom a request goes to. `authority` is the Host header."""

    secure: bool
    host: str
    port: int
    authority: str


def split_url(url: str) -> tuple[Origin, str]:
    """Whom an http or https URL names, and the request target: path and query, `/` for none. A fragment is not sent (RFC 9110, 7.1).

    Raises ValueError for any other URL, and for one with a user or a password: those belong into a header.
    `split_url("https://api.example.com/jobs?wait=30")`
    """
    found = _ABSOLUTE.fullmatch(url)
    if found is None:
        raise ValueError(f"{_EXPECTED}; got another form: write all of it, and what it may not contain as %XX")
    target = found[2]
    return _origin_of(found[1]), target if target.startswith("/") else f"/{target}"


@lru_cache(maxsize=_ORIGINS)
def _origin_of(url: str) -> Origin:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"{_EXPECTED}; got a host or a port that is none: write a port from 1 to 65535") from None
    if parts.scheme not in _PORTS:
        raise ValueError(f"{_EXPECTED}; got another scheme: only these two are spoken")
    if "@" in parts.netloc:
        raise ValueError(f"{_EXPECTED}; got a user before the host: put credentials into a header")
    if not parts.hostname:
        raise ValueError(f"{_EXPECTED}; got no host: name one")
    if port == 0:
        raise ValueError(f"{_EXPECTED}; got port 0: write one from 1 to 65535")
    usual = _PORTS[parts.scheme]
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Origin(
        secure=parts.scheme == "https",
        host=parts.hostname,
        port=port or usual,
        authority=name if port in {None, usual} else f"{name}:{port}",
    )
