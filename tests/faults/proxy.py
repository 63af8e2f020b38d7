"""Something between a client and PostgreSQL that loses connections to the byte: in the middle of a request, or of its reply.

It follows the protocol only as far as it must: it finds the exchange that it is to cut by the text of its statement.
"""

import asyncio
import enum
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

PORT = 5432
Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SYNC, QUERY, PARSE, BIND, READY = b"S", b"Q", b"P", b"B", b"Z"


class Side(enum.Enum):
    """Which half of an exchange is cut."""

    REQUEST = enum.auto()
    REPLY = enum.auto()


class End(enum.Enum):
    """How the client learns of it; a reset reaches it only where it came by TCP."""

    FIN = enum.auto()
    RST = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where to cut: after so many bytes, or this share of them, of the request or of the reply to one that was executed.

    A request of which a byte is missing is never executed; of a whole one the reply is not waited for, so it may still be executing.
    """

    side: Side
    share: float = 0.0
    at_bytes: int | None = None
    end: End = End.FIN

    def of(self, exchange: bytes) -> bytes:
        """What gets through."""
        return exchange[: round(len(exchange) * self.share) if self.at_bytes is None else self.at_bytes]


class _Lost(Exception):
    """The connection was cut."""

    def __init__(self, end: End) -> None:
        self.end = end


class Proxy:
    """`cuts` befall the exchanges whose statement contains `marker`, one after another; later ones pass."""

    def __init__(self, server: str, marker: bytes, cuts: Iterable[Cut | None], *, closes: bool = False) -> None:
        self._closes = closes
        self._server = server
        self._marker = marker
        self._cuts = iter(cuts)
        self.cut_count = 0
        self.sizes: list[tuple[int, int]] = []
        """The bytes of request and reply of each marked exchange that passed."""

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection; one that comes after the first cut of a proxy that closes is refused."""
        if self._closes and self.cut_count:
            writer.transport.abort()
            return
        above, below = await asyncio.open_unix_connection(self._server)
        try:
            await _Conversation(self, reader, writer, above, below).run()
        except _Lost as lost:
            if lost.end is End.RST:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            for each in (writer, below):
                each.transport.abort()

    def next_cut(self) -> Cut | None:
        """What befalls the next marked exchange."""
        return next(self._cuts, None)

    def is_marked(self, text: bytes) -> bool:
        return self._marker in text


@dataclass(slots=True)
class _Conversation:
    proxy: Proxy
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    above: asyncio.StreamReader
    below: asyncio.StreamWriter

    async def run(self) -> None:
        """Requests go up one by one, each with its whole reply coming down; what comes unasked in between waits for the next."""
        size = await self.reader.readexactly(4)
        self.below.write(size + await self.reader.readexactly(struct.unpack("!I", size)[0] - 4))
        names: set[bytes] = set()
        await self._reply(None)
        while True:
            request, marked = await self._request(names)
            cut = self.proxy.next_cut() if marked else None
            if cut is not None and cut.side is Side.REQUEST:
                self.proxy.cut_count += 1
                self.below.write(cut.of(request))
                await self.below.drain()
                raise _Lost(cut.end)
            self.below.write(request)
            reply_bytes = await self._reply(cut)
            if marked:
                self.proxy.sizes.append((len(request), reply_bytes))

    async def _request(self, names: set[bytes]) -> tuple[bytes, bool]:
        """Messages up to the one that asks for a reply, and whether the statement that they run is a marked one."""
        request, marked = b"", False
        while True:
            kind, message = await message_from(self.reader)
            request += message
            if kind == PARSE:
                name, text = message[5:].split(b"\0", 2)[:2]
                if self.proxy.is_marked(text):
                    names.add(name)
            elif kind == BIND:
                marked = marked or message[5:].split(b"\0", 2)[1] in names
            elif kind == QUERY:
                return request, self.proxy.is_marked(message[5:].lower())
            if kind == SYNC:
                return request, marked

    async def _reply(self, cut: Cut | None) -> int:
        """The reply, up to where the server is ready again: what was committed is committed by then. Its bytes."""
        reply = b""
        while True:
            kind, message = await message_from(self.above)
            reply += message
            if kind == READY:
                break
        if cut is not None:
            self.proxy.cut_count += 1
            self.writer.write(cut.of(reply))
            await self.writer.drain()
            raise _Lost(cut.end)
        self.writer.write(reply)
        return len(reply)


async def message_from(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next message of the protocol, and its kind."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


@contextmanager
def cutting(
    url: str, marker: bytes, cuts: Iterable[Cut | None], *, by_tcp: bool = False, closes: bool = False
) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of `url`, and the address by which it is reached: a local socket, or a port of the loopback."""
    proxy = Proxy(socket_of(url), marker, cuts, closes=closes)
    with carried_by(proxy.converse, url, by_tcp=by_tcp) as address:
        yield proxy, address


def socket_of(url: str) -> str:
    """Where the server of `url` listens."""
    return f"{parse_qs(urlsplit(url).query)['host'][0]}/.s.PGSQL.{PORT}"


@contextmanager
def carried_by(converse: Converse, url: str, *, by_tcp: bool = False) -> Iterator[str]:
    """The address of a place of our own whose connections `converse` carries, on a loop beside the test; otherwise as in `url`."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> asyncio.Server:
        if by_tcp:
            return await asyncio.start_server(converse, "127.0.0.1", 0, limit=2**24)
        return await asyncio.start_unix_server(converse, folder / f".s.PGSQL.{PORT}", limit=2**24)

    async def end() -> None:
        listening.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    listening = asyncio.run_coroutine_threadsafe(begin(), loop).result(10)
    address = f"host={quote(str(folder), safe='')}&port={PORT}"
    if by_tcp:
        address = f"host=127.0.0.1&port={listening.sockets[0].getsockname()[1]}&sslmode=disable&gssencmode=disable"
    try:
        yield urlsplit(url)._replace(query=address).geturl()
    finally:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        shutil.rmtree(folder)
