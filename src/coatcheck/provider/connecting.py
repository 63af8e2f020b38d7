"""From an origin to a socket on which the first byte may be sent. Whatever goes wrong on the way to a POST's line is proof that the service got nothing.

A POST's socket is set up before it connects so that no process, and no kernel after the process's end, delivers the request late:
SO_LINGER(1, 0) turns each close into a reset that drops what is queued, TCP_USER_TIMEOUT ends a dead path.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from coatcheck.core.evidence import Stage
from coatcheck.provider.line import Line, TlsLine
from coatcheck.provider.origin import Origin
from coatcheck.provider.progress import Progress
from coatcheck.seams import Addresses, Point, Seams, Socket

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)

T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[Addresses]]
"""Who says what a host and a port stand for; raises OSError or UnicodeError for a name that is unknown, or is none."""


class NotConnectedError(Exception):
    """No connection came about. The message is the failure's word: name_unknown, refused, connect_timeout, tls_failed and so on."""


def secure_context() -> ssl.SSLContext:
    """The TLS settings of every request: certificates and names are checked, HTTP/1.1 is offered and nothing else."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def line_to(
    origin: Origin, *, until: float, limit_s: float, tls: ssl.SSLContext, seams: Seams, progress: Progress
) -> Line:
    """A line on which nothing was sent yet, ready before `until` (boottime). Raises NotConnectedError."""

    async def opened(fresh: Socket, address: tuple[str, int]) -> Line:
        await seams.connect.dial(_prepared(fresh, limit_s), address)
        return await _line(fresh, origin=origin, tls=tls, progress=progress)

    # asked anew for each POST, in the resolver's order
    resolve = seams.connect.resolve
    return await connected(
        origin, opened, resolve=resolve, until=until, seams=seams, progress=progress, point=Point.D6_CONNECTING
    )


async def connected(
    origin: Origin,
    opened: Callable[[Socket, tuple[str, int]], Awaitable[T]],
    *,
    resolve: Resolve,
    until: float,
    seams: Seams,
    progress: Progress,
    point: Point | None = None,
) -> T:
    """What `opened` makes of a fresh socket and an address, before `until` (boottime). Raises NotConnectedError.

    Addresses are tried one after the other, each for its share of the time left: as long as no byte of the request left, trying again is free.
    `point` is passed before each.
    """
    progress.reached(Stage.RESOLVING)
    try:
        async with asyncio.timeout(until - seams.clock.boottime()):
            addresses = await resolve(origin.host, origin.port)
    except TimeoutError:
        raise NotConnectedError("resolve_timeout") from None
    except (OSError, UnicodeError):
        raise NotConnectedError("name_unknown") from None
    cause = "name_unknown"
    for position, (family, address) in enumerate(addresses):
        share = (until - seams.clock.boottime()) / (len(addresses) - position)
        progress.reached(Stage.CONNECTING)
        if point is not None:
            seams.faults.reached(point)
        fresh = seams.connect.socket(family)
        try:
            async with asyncio.timeout(share):
                return await opened(fresh, address)
        except OSError as error:
            fresh.close()
            cause = _cause(error)
        except BaseException:
            fresh.close()
            raise
    raise NotConnectedError(cause)


def _prepared(fresh: Socket, limit_s: float) -> Socket:
    fresh.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Line(fresh).expire(limit_s)
    return fresh


async def _line(dialled: Socket, *, origin: Origin, tls: ssl.SSLContext, progress: Progress) -> Line:
    """The line over a connected socket."""
    if not origin.secure:
        progress.reached(Stage.CONNECTED)
        return Line(dialled)
    progress.reached(Stage.TLS)
    line = TlsLine(dialled, tls, origin.host)
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
