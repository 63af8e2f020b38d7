"""Something between a client and PostgreSQL that loses connections to the byte: in the middle of a request, or of its reply.

It follows the protocol only as far as it must: it finds the exchange that it is to cut by the text of its statement.
"""

import asyncio
import enum
import shutil
import struct
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

PORT = 5432
SYNC, QUERY, PARSE, BIND, READY = b"S", b"Q", b"P", b"B", b"Z"


class Side(enum.Enum):
    """Which half of an exchange is cut."""

    REQUEST = enum.auto()
    REPLY = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where to cut: after this share of the bytes of the request, which is then never executed, or of the reply to an executed one."""

    side: Side
    share: float


class _Lost(Exception):
    """The connection was cut."""


class Proxy:
    """`cuts` befall the exchanges whose statement contains `marker`, one after another; later ones pass."""

    def __init__(self, server: str, marker: bytes, cuts: Iterable[Cut | None]) -> None:
        self._server = server
        self._marker = marker
        self._cuts = iter(cuts)
        self.cut_count = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        above, below = await asyncio.open_unix_connection(self._server)
        try:
            await _Conversation(self, reader, writer, above, below).run()
        except (_Lost, OSError, asyncio.IncompleteReadError):
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
                self.below.write(request[: round(len(request) * cut.share)])
                await self.below.drain()
                raise _Lost
            self.below.write(request)
            await self._reply(cut)

    async def _request(self, names: set[bytes]) -> tuple[bytes, bool]:
        """Messages up to the one that asks for a reply, and whether the statement that they run is a marked one."""
        request, marked = b"", False
        while True:
            kind, message = await _message(self.reader)
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

    async def _reply(self, cut: Cut | None) -> None:
        """The reply, up to where the server is ready again: what was committed is committed by then."""
        reply = b""
        while True:
            kind, message = await _message(self.above)
            reply += message
            if kind == READY:
                break
        if cut is not None:
            self.proxy.cut_count += 1
            self.writer.write(reply[: round(len(reply) * cut.share)])
            await self.writer.drain()
            raise _Lost
        self.writer.write(reply)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


@contextmanager
def cutting(url: str, marker: bytes, cuts: Iterable[Cut | None]) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of `url`, and the address by which it is reached."""
    parts = urlsplit(url)
    server = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.{PORT}"
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    proxy = Proxy(server, marker, cuts)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> asyncio.Server:
        return await asyncio.start_unix_server(proxy.converse, folder / f".s.PGSQL.{PORT}", limit=2**24)

    async def end() -> None:
        listening.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    listening = asyncio.run_coroutine_threadsafe(begin(), loop).result(10)
    try:
        yield proxy, parts._replace(query=f"host={quote(str(folder), safe='')}&port={PORT}").geturl()
    finally:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        shutil.rmtree(folder)
