"""How far one HTTP exchange got, as a value: the grounds on which a dispatch is judged.

Classification reads `stage` and `status`, never an exception's class or a message: clients raise the same exception for a request that
was never sent and for one that was carried out (measured, 43 fault cases).
"""

import enum
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from coatcheck.core.frozen import frozen
from coatcheck.core.redact import redacted

REQUEST_ID_LIMIT: Final = 200
"""Characters of the longest request id that is kept."""

REQUEST_IDS: Final = 8
"""How many request ids of one reply are kept."""

_NAMES_A_REQUEST: Final = re.compile(
    r"(?:[a-z0-9-]{1,40}-)?(?:request|correlation|transaction|trace)-?id"
    r"|cf-ray|x-amz-cf-id|x-amz-id-2|x-vercel-id|x-cloud-trace-context|traceparent"
)
"""Headers by which a service's own support finds the request: what most call an id of it, and what some gateways call otherwise."""


class Stage(enum.StrEnum):
    """The last stage reached, in order. From HEADERS_BEGUN on the service may have the request."""

    MARKED = "marked"
    RESOLVING = "resolving"
    CONNECTING = "connecting"
    TLS = "tls"
    CONNECTED = "connected"
    HEADERS_BEGUN = "headers_begun"
    BODY_SENT = "body_sent"
    STATUS_RECEIVED = "status_received"
    BODY_RECEIVED = "body_received"

    @property
    def rank(self) -> int:
        """Position in the order of stages."""
        return list(Stage).index(self)


@frozen
class Request:
    """One HTTP request as an adapter wants it sent. `headers` carry the credential: never shown."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)


@frozen
class Exchange:
    """What came of one request: the evidence, whether or not a reply arrived.

    `bytes_sent` counts bytes handed to the kernel; zero is the only proof that the service got nothing.
    `complete` says that the reply's body arrived whole, `framed` that a length or chunks said so: else only the end of the connection did,
    and a process that dies ends its connections like one that has finished. `failure` is a short word of ours, never a driver's text.
    `marks_ms` tells when each stage was reached, in milliseconds since the exchange began.
    """

    stage: Stage
    bytes_sent: int = 0
    bytes_received: int = 0
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    complete: bool = False
    framed: bool = False
    failure: str | None = None
    marks_ms: tuple[tuple[Stage, int], ...] = ()

    def header(self, name: str) -> str | None:
        """The first value of a header, by case-insensitive name."""
        return first_value(self.headers, name)


def first_value(headers: Sequence[tuple[str, str]], name: str) -> str | None:
    """The first value of a header, by case-insensitive name: `first_value(exchange.headers, "Retry-After")`."""
    wanted = name.lower()
    for key, value in headers:
        if key.lower() == wanted:
            return value
    return None


def request_ids(exchange: Exchange, secret: str) -> dict[str, str]:
    """What names this request at the service's support, by lower-case header: `request_ids(exchange, key)["x-request-id"]`.

    At most 8 of at most 200 printable characters each, the first of each name, `secret` replaced wherever a service echoes it.
    """
    found: dict[str, str] = {}
    for header, value in exchange.headers:
        name = header.lower()
        if name in found or len(found) == REQUEST_IDS or not _NAMES_A_REQUEST.fullmatch(name):
            continue
        text = "".join(each for each in value if each.isprintable()).strip()
        if text:
            kept = redacted(text.encode("latin-1", "replace"), secret).decode("latin-1")
            found[name] = kept[:REQUEST_ID_LIMIT]
    return found
