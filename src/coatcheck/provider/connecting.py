"""From a URL to a line on which the first byte may be sent. Whatever goes wrong here is proof that the service got nothing.

Every socket is set up before it connects so that no process, and no kernel after the process's end, delivers the request late:
SO_LINGER(1, 0) turns each close into a reset that drops what is queued, TCP_USER_TIMEOUT ends a dead path.
"""

import asyncio
import socket
import ssl
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from coatcheck.core.evidence import Stage
from coatcheck.provider.line import Line, TlsLine
from coatcheck.provider.progress import Progress
from coatcheck.seams import Point, Seams, Socket

_TARGETS: Final = 64
"""Addresses that are kept: each account posts to one."""
_PORTS: Final = {"http": 80, "https": 443}
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


class NotConnectedError(Exception):
    """No line came about. The message is the failure's word: name_unknown, refused, connect_timeout, tls_failed and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes. `authority` is the Host header, `path` the request target with its query."""

    secure: bool
    host: str
    port: int
    authority: str
    path: str


@lru_cache(maxsize=_TARGETS)
def target_of(url: str) -> Target:
    """The parts of an http or https URL; raises ValueError for any other."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("expected an absolute http or https URL")
    usual = _PORTS[parts.scheme]
    port = parts.port or usual
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Target(
        secure=parts.scheme == "https",
        host=parts.hostname,
        port=port,
        authority=name if port == usual else f"{name}:{port}",
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
    )


def secure_context() -> ssl.SSLContext:
    """The TLS settings of every request: certificates and names are checked, HTTP/1.1 is offered and nothing else."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def line_to(
    target: Target, *, until: float, limit_s: float, tls: ssl.SSLContext, seams: Seams, progress: Progress
) -> Line:
    """A line on which nothing was sent yet, ready before `until` (boottime). Raises NotConnectedError.

    Addresses are tried one after the other, each for its share of the time left: as long as no byte of the request left, trying again is free.
    """
    progress.reached(Stage.RESOLVING)
    try:
        async with asyncio.timeout(until - seams.clock.boottime()):
            addresses = await seams.connect.resolve(target.host, target.port)
    except TimeoutError:
        raise NotConnectedError("resolve_timeout") from None
    except (OSError, UnicodeError):
        raise NotConnectedError("name_unknown") from None
    cause = "name_unknown"
    for position, (family, address) in enumerate(addresses):
        share = (until - seams.clock.boottime()) / (len(addresses) - position)
        progress.reached(Stage.CONNECTING)
        seams.faults.reached(Point.D6_CONNECTING)
        prepared = _prepared(seams.connect.socket(family), limit_s)
        try:
            async with asyncio.timeout(share):
                await seams.connect.dial(prepared, address)
                return await _opened(prepared, target=target, tls=tls, progress=progress)
        except OSError as error:
            prepared.close()
            cause = _cause(error)
        except BaseException:
            prepared.close()
            raise
    raise NotConnectedError(cause)


def _prepared(fresh: Socket, limit_s: float) -> Socket:
    fresh.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Line(fresh).expire(limit_s)
    return fresh


async def _opened(prepared: Socket, *, target: Target, tls: ssl.SSLContext, progress: Progress) -> Line:
    """The line over a connected socket."""
    if not target.secure:
        progress.reached(Stage.CONNECTED)
        return Line(prepared)
    progress.reached(Stage.TLS)
    line = TlsLine(prepared, tls, target.host)
    await line.handshake()
    progress.reached(Stage.CONNECTED)
    return line


def _cause(error: OSError) -> str:
    match error:
        case TimeoutError():
            return "connect_timeout"
        case ssl.SSLCertVerificationError():
            return "certificate_refused"
        case ssl.SSLError():
            return "tls_failed"
        case ConnectionRefusedError():
            return "refused"
        case _:
            return "unreachable"
