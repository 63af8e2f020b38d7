"""GETs: free, repeatable, held by the thousand. Their door cannot send anything else, so nothing that looks can ever spend (S9).

Only a status that was received counts: aiohttp invents a 400 for a malformed answer, so statuses are taken from replies alone. A GET whose
connection ends without an answer, as idle ones do, is sent once more, which is harmless. Bytes sent are not counted: a GET needs no proof.
"""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from http.cookies import SimpleCookie
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.provider.coding import decoded
from coatcheck.provider.progress import Progress
from coatcheck.seams import Point, Seams, Socket

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of the longest snapshot, as sent and as decoded."""


_OURS_TO_TIME: Final = aiohttp.ClientTimeout(total=None)
"""aiohttp's own end of a request is over with its sending, and costs a held look more than ours."""


class _Reply(aiohttp.ClientResponse):
    """Handed over as soon as its request is sent: aiohttp would keep all that sent it until the reply begins, a fourth of what a held look takes."""

    async def start(self, connection: Connection) -> Self:
        """Nothing yet, where aiohttp reads the head."""
        self._connection = connection
        return self


def _begun(reply: aiohttp.ClientResponse) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
    """Status and headers, as aiohttp reads them. Should that fail, close the reply: what its connection still brings is nobody else's answer."""
    if reply.connection is None:
        raise aiohttp.ServerDisconnectedError
    return aiohttp.ClientResponse.start(reply, reply.connection)


class _NoCookies(aiohttp.DummyCookieJar):
    """None are kept, and none are made anew for each request."""

    _none: Final = SimpleCookie()

    def filter_cookies(self, request_url: URL) -> SimpleCookie:  # noqa: ARG002 - the form of aiohttp's jars
        """There are none."""
        return self._none


class Session:
    """One session for the whole process. What may be sent through it, who derives from it says; by itself it sends nothing."""

    def __init__(self, *, tls: ssl.SSLContext, seams: Seams) -> None:
        self._tls = tls
        self._seams = seams
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # No limit of connections: each render that is being waited for holds one. How many may be waited for is the observer's to say.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, socket_factory=self._socket),
            cookie_jar=_NoCookies(),
            auto_decompress=False,
            trust_env=False,
            response_class=_Reply,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _socket(self, found: aiohttp.AddrInfoType) -> Socket:
        return self._seams.connect.socket(socket.AddressFamily(found[0]))

    async def _exchange(self, request: Request, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` in all. Remote faults are in the value, never raised; redirects are not followed.

        A body is never sent. Raises RuntimeError outside the `async with` block.
        """
        if self._session is None:
            raise RuntimeError(f"expected an open session: use `async with {type(self).__name__}(...)`")
        progress = Progress(self._seams.clock)
        progress.reached(Stage.CONNECTING)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._asked(self._session, request, progress)
                try:
                    await self._read(reply, progress)
                finally:
                    reply.release()
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            progress.failed(_cause(error))
        return progress.exchange()

    async def _asked(
        self, session: aiohttp.ClientSession, request: Request, progress: Progress
    ) -> aiohttp.ClientResponse:
        """Send it and wait for status and headers; twice at most, and anything but a GET once."""
        again = request.method == "GET"
        while True:
            reply = await session.request(
                request.method,
                URL(request.url, encoded=True),
                headers=request.headers,
                allow_redirects=False,
                timeout=_OURS_TO_TIME,
            )
            try:
                progress.reached(Stage.BODY_SENT)
                self._reached(Point.O3_GET_SENT)
                return await _begun(reply)
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
                reply.close()
                if not again:
                    raise
                again = False
            except BaseException:
                reply.close()
                raise

    async def _read(self, reply: aiohttp.ClientResponse, progress: Progress) -> None:
        progress.answered(reply.status, tuple(reply.headers.items()))
        async for part in reply.content.iter_any():
            progress.received(len(part))
            self._reached(Point.O4_RESPONSE_BYTES, progress.bytes_received)
            progress.took(part[: BODY_LIMIT - progress.body_count])
            if progress.bytes_received > BODY_LIMIT:
                progress.failed("too_large")
                reply.close()
                return
        body = decoded(progress.body, progress.header("Content-Encoding"), limit=BODY_LIMIT)
        if body is None:
            progress.failed("undecodable")
        else:
            framed = not {"Content-Length", "Transfer-Encoding"}.isdisjoint(reply.headers)
            progress.finished(body, framed=framed)

    def _reached(self, point: Point, count: int = 0) -> None:
        """A point of a look's course was passed."""


class Gets(Session):
    """GETs only. `async with Gets(tls=secure_context(), seams=seams) as gets: await gets.get(request, timeout_s=40)`."""

    def get(self, request: Request, *, timeout_s: float) -> Coroutine[Any, Any, Exchange]:
        """What came back within `timeout_s` in all. Remote faults are in the value, never raised; redirects are not followed.

        Raises ValueError for a request that is not a GET, and RuntimeError outside the `async with` block.
        """
        if request.method != "GET" or request.body:
            raise ValueError(f"expected a GET without a body, got {request.method}")
        return self._exchange(request, timeout_s)

    def _reached(self, point: Point, count: int = 0) -> None:
        self._seams.faults.reached(point, count)


_CAUSES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, "timeout"),
    (aiohttp.ClientConnectorCertificateError, "certificate_refused"),
    (aiohttp.ClientConnectorDNSError, "name_unknown"),
    (aiohttp.ClientConnectorSSLError, "tls_failed"),
    (aiohttp.ClientConnectorError, "unreachable"),
    (aiohttp.ServerDisconnectedError, "closed"),
    (aiohttp.ClientPayloadError, "closed"),
    (aiohttp.ClientResponseError, "malformed_reply"),
    (aiohttp.InvalidURL, "bad_request"),
    (OSError, "reset"),
)
"""Words for the reader of a log: the narrower class stands first. No decision rests on them."""


def _cause(error: Exception) -> str:
    return next((word for kind, word in _CAUSES if isinstance(error, kind)), "broken")
