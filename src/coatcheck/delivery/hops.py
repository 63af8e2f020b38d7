"""One GET to a URL that we do not trust: every hop is judged, resolved once, and connected only to an address that was judged.

A hop has a session of its own, so no cookie, credential or pooled connection passes from one host to another, and no name is resolved a
second time between the check and the connection. Environment proxies and .netrc are not read.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.tracing import TraceConfig

from coatcheck.delivery.addresses import Address, HostPolicy, Target, masked
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.seams import Faults, Point, Seams

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS: Mapping[str, str] = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "coatcheck"}


class Hops:
    """Opens a URL under a host policy. Keeps no state between calls; any number may run at once."""

    def __init__(self, *, policy: HostPolicy, limits: Limits, seams: Seams, tls: ssl.SSLContext | None = None) -> None:
        self._policy = policy
        self._limits = limits
        self._seams = seams
        self._tls: ssl.SSLContext | bool = True if tls is None else tls
        self._trace = _trace(seams.faults)

    @asynccontextmanager
    async def opened(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The first answer that is no redirect, its body unread. Raises `Stopped`."""
        target = self._policy.admit(url)
        for _ in range(self._limits.max_redirects + 1):
            addresses = await self._resolve(target)
            async with self._session(addresses) as session:
                with closing(await _ask(session, target)) as reply:
                    if reply.status not in _REDIRECTS:
                        yield reply
                        return
                    target = self._next(target, reply)
        raise Stopped(Reason.TOO_MANY_REDIRECTS, f"more than {self._limits.max_redirects} redirects")

    async def _resolve(self, target: Target) -> list[Address]:
        host, port = target.origin.host, target.origin.port
        try:
            async with asyncio.timeout(self._limits.connect_s):
                found = await self._seams.connect.resolve(host, port)
            addresses = [ipaddress.ip_address(address) for _, (address, _) in found]
        except TimeoutError:
            raise Stopped(Reason.TIMED_OUT, f"{host} did not resolve in {self._limits.connect_s:g} s") from None
        except (OSError, ValueError) as error:
            raise Stopped(Reason.UNREACHABLE, f"{host} did not resolve ({type(error).__name__})") from None
        if not addresses:
            raise Stopped(Reason.UNREACHABLE, f"{host} has no address")
        self._policy.check_addresses(target, addresses)
        self._seams.faults.reached(Point.V3_RESOLVED)
        return addresses

    def _session(self, addresses: list[Address]) -> aiohttp.ClientSession:
        pinned = _Pinned(addresses, self._seams)
        connector = aiohttp.TCPConnector(
            resolver=pinned, socket_factory=pinned.socket, use_dns_cache=False, force_close=True, ssl=self._tls
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self._limits.connect_s, sock_read=self._limits.idle_s
            ),
            trace_configs=[self._trace],
            headers=_HEADERS,
            auto_decompress=False,  # an encoded body is refused by its header, and must not unfold in a buffer until then
            trust_env=False,
        )

    def _next(self, source: Target, reply: aiohttp.ClientResponse) -> Target:
        location = reply.headers.get("Location")
        if location is None:
            raise Stopped(Reason.STATUS, f"status {reply.status} without a Location")
        try:
            joined = urljoin(str(source.url), location)
        except ValueError:
            raise Stopped(Reason.BLOCKED_ADDRESS, "a redirect to a URL that cannot be read") from None
        destination = self._policy.admit(joined)
        self._policy.check_redirect(source, destination)
        return destination


class _Pinned(AbstractResolver):
    """Answers every name with the judged addresses, and makes sockets for no other."""

    def __init__(self, addresses: list[Address], seams: Seams) -> None:
        self._addresses = addresses
        self._connect = seams.connect

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - aiohttp's signature; each address names its own
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,  # noqa: PLR2004 - IPv4
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""

    def socket(self, found: aiohttp.AddrInfoType) -> socket.socket:  # noqa: TID251 - only the type's name
        """The second wall: aiohttp passes over a resolver for hosts that it takes for addresses."""
        family, _, _, _, address = found
        if ipaddress.ip_address(address[0]) not in self._addresses:
            raise Stopped(Reason.BLOCKED_ADDRESS, f"a connection to {address[0]}, which was not judged")
        return self._connect.socket(socket.AddressFamily(family))


async def _ask(session: aiohttp.ClientSession, target: Target) -> aiohttp.ClientResponse:
    """Send the GET and read status and headers. A status is taken only from a response: aiohttp invents some in its exceptions."""
    where = masked(str(target.url))
    try:
        return await session.get(target.url, allow_redirects=False)
    except TimeoutError as error:
        raise Stopped(Reason.TIMED_OUT, f"{where} did not answer in time ({type(error).__name__})") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # Never the exception's own text: it may quote the URL.
        raise Stopped(Reason.UNREACHABLE, f"{where} gave no answer ({type(error).__name__})") from None


def _trace(faults: Faults) -> TraceConfig:
    async def connected(*_: object) -> None:
        faults.reached(Point.V4_CONNECTED)

    trace = TraceConfig()
    trace.on_connection_create_end.append(connected)
    return trace
