"""GETs: free, repeatable, held by the thousand. Their door cannot send anything else, so nothing that looks can ever spend (S9).

`Client` is what they share with wishes to cancel: requests without a body.

Connections are kept from one GET to the next. A GET whose connection ends before anything was said, as idle ones do, is sent once more over a new
one, which is harmless. A wish to cancel is not sent twice: each has a connection of its own, which no service is about to end as idle. Redirects are
not followed, and no proxy is taken from the environment. Bytes sent are not counted: a GET needs no proof.
"""

import asyncio
import ssl
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, cast

from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.provider.connecting import NotConnectedError, connected
from coatcheck.provider.heading import fields
from coatcheck.provider.kept import Connection, Pool
from coatcheck.provider.names import Names
from coatcheck.provider.origin import Origin, split_url
from coatcheck.provider.progress import Progress
from coatcheck.provider.reply import ReplyReader
from coatcheck.seams import Point, Seams, Socket


class Client:
    """One for the whole process, to be opened once. What may be sent through it, who derives from it says; by itself it sends nothing."""

    def __init__(self, *, tls: ssl.SSLContext, seams: Seams) -> None:
        self._tls = tls
        self._seams = seams
        self._pool: Pool | None = None
        self._names = Names(seams.clock, seams.connect)

    async def __aenter__(self) -> Self:
        # No limit of connections: each render that is being waited for holds one. How many may be waited for is the observer's to say.
        self._pool = Pool(self._seams.clock)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        await self._names.close()

    async def _exchange(self, request: Request, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` in all. Remote faults are in the value, never raised; redirects are not followed.

        A body is never sent. Raises RuntimeError outside the `async with` block.
        """
        if self._pool is None:
            raise RuntimeError(f"expected an open client: use `async with {type(self).__name__}(...)`")
        progress = Progress(self._seams.clock)
        until = self._seams.clock.boottime() + timeout_s
        try:
            await self._course(request, self._pool, until, progress)
        except NotConnectedError as failure:
            progress.failed(str(failure))
        except TimeoutError:
            progress.failed("timeout")
        return progress.exchange()

    async def _course(self, request: Request, pool: Pool, until: float, progress: Progress) -> None:
        """Send it and read the reply. Raises NotConnectedError, also for what cannot be sent, and TimeoutError."""
        try:
            origin, target = split_url(request.url)
            head = _head(request, origin, target)
        except ValueError:
            raise NotConnectedError("bad_request") from None
        connection = pool.take(origin) or await self._connected(origin, until, progress)
        reader = ReplyReader(request.method, progress)
        await self._conversed(connection, head, reader, until, progress)
        if not (reader.over or progress.bytes_received) and _may_repeat(request):
            connection = await self._connected(origin, until, progress)
            await self._conversed(connection, head, reader, until, progress)
        if not reader.over:
            reader.end("closed" if connection.is_orderly else "reset", orderly=connection.is_orderly)
        if _may_repeat(request) and reader.leaves_open and connection.rest():
            pool.keep(origin, connection)
        else:
            connection.close()

    async def _connected(self, origin: Origin, until: float, progress: Progress) -> Connection:
        async def opened(fresh: Socket, address: tuple[str, int]) -> Connection:
            await self._seams.connect.dial(fresh, address)
            loop = asyncio.get_running_loop()
            clear, connection = await loop.create_connection(lambda: Connection(fresh), sock=fresh)
            if origin.secure:
                progress.reached(Stage.TLS)
                # not by create_connection, which leaves the socket watched when it is cancelled while TLS begins
                secure = await loop.start_tls(clear, connection, self._tls, server_hostname=origin.host)
                connection.secured(cast("asyncio.Transport", secure))
            progress.reached(Stage.CONNECTED)
            self._names.reached(origin.host, origin.port, address)
            return connection

        resolve = self._names.resolve
        return await connected(origin, opened, resolve=resolve, until=until, seams=self._seams, progress=progress)

    async def _conversed(
        self, connection: Connection, head: bytes, reader: ReplyReader, until: float, progress: Progress
    ) -> None:
        """Over one connection, until the reply is whole or the connection ends. It is closed unless that was so."""
        try:
            async with asyncio.timeout(until - self._seams.clock.boottime()):
                connection.ask(head)
                progress.reached(Stage.BODY_SENT)
                self._reached(Point.O3_GET_SENT)
                while not reader.over and (data := await connection.receive()):
                    progress.received(len(data))
                    self._reached(Point.O4_RESPONSE_BYTES, progress.bytes_received)
                    reader.feed(data)
        except BaseException:
            connection.close()
            raise

    def _reached(self, point: Point, count: int = 0) -> None:
        """A point of a look's course was passed."""


def _may_repeat(request: Request) -> bool:
    return request.method == "GET"


def _head(request: Request, origin: Origin, target: str) -> bytes:
    """The request as it is sent: it never has a body, and a POST has to say so (RFC 9110, 8.6)."""
    length = b"Content-Length: 0\r\n" if request.method == "POST" else b""
    lines = fields(origin, request.headers, is_last=not _may_repeat(request))
    return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (request.method.encode(), target.encode(), lines, length)


class Gets(Client):
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
