"""GETs: free, repeatable, held by the thousand. Their door cannot send anything else, so nothing that looks can ever spend (S9).

Only a status that was received counts: aiohttp invents a 400 for a malformed answer, so statuses are taken from replies alone. Its silent
resend of a GET on a dead idle connection is harmless here. Bytes sent are not counted: a GET needs no proof.
"""

import asyncio
import socket
import ssl
from types import SimpleNamespace, TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.provider.coding import decoded
from coatcheck.provider.progress import Progress
from coatcheck.seams import Point, Seams, Socket

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of the longest snapshot, as sent and as decoded."""


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
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[self._trace()],
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
            async with self._session.request(
                request.method,
                URL(request.url, encoded=True),
                headers=request.headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                trace_request_ctx=progress,
            ) as reply:
                await self._read(reply, progress)
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            progress.failed(_cause(error))
        return progress.exchange()

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

    def _trace(self) -> aiohttp.TraceConfig:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(self._sent)
        return trace

    async def _sent(
        self, _: aiohttp.ClientSession, context: SimpleNamespace, __: aiohttp.TraceRequestHeadersSentParams
    ) -> None:
        progress: Progress = context.trace_request_ctx
        progress.reached(Stage.BODY_SENT)
        self._reached(Point.O3_GET_SENT)

    def _reached(self, point: Point, count: int = 0) -> None:
        """A point of a look's course was passed."""


class Gets(Session):
    """GETs only. `async with Gets(tls=secure_context(), seams=seams) as gets: await gets.get(request, timeout_s=40)`."""

    async def get(self, request: Request, *, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` in all. Remote faults are in the value, never raised; redirects are not followed.

        Raises ValueError for a request that is not a GET, and RuntimeError outside the `async with` block.
        """
        if request.method != "GET" or request.body:
            raise ValueError(f"expected a GET without a body, got {request.method}")
        return await self._exchange(request, timeout_s)

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
