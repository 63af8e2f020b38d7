"""Something between the wire and the simulated service that ends one exchange after any byte, in every way in which a connection can end.

It carries no more than the cut allows and keeps the service's own ledger true: what of a request got through, the service has seen and
recorded before the client learns of the end.
"""

import asyncio
import enum
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

PATIENCE_S = 30.0
LIMIT = 1 << 20
JUNK = b"\x00\xff\x00\xff" * 256
"""Neither a head nor JSON, at whatever byte it begins, and longer than any reply here."""


class Side(enum.Enum):
    """Which half of the exchange is cut."""

    REQUEST = enum.auto()
    REPLY = enum.auto()


class End(enum.Enum):
    """How the client learns of it: an orderly end, a reset, silence, or bytes that mean nothing."""

    FIN = enum.auto()
    RST = enum.auto()
    STALL = enum.auto()
    GARBAGE = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """After `at` bytes of the request, or of the reply to a whole one."""

    side: Side
    at: int
    end: End


class Cutter:
    """One line at a time: `async with Cutter(port) as line: line.cut = Cut(…)`, then one exchange with `line.url`."""

    def __init__(self, service_port: int) -> None:
        self._service_port = service_port
        self.cut: Cut | None = None
        self.connections = 0
        self.request = b""
        self.reply = b""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, host="127.0.0.1", limit=LIMIT)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.idle()
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def idle(self) -> None:
        """Wait until every exchange so far is over on both sides."""
        async with asyncio.timeout(PATIENCE_S):
            while self._tasks:
                await asyncio.gather(*self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cut = self.cut
        try:
            if cut is None:
                self.request = await _request(reader)
                self.reply = await self._served(self.request)
                writer.write(self.reply)
            elif cut.side is Side.REQUEST:
                part = await _part(reader, cut.at)
                await self._served(part)
                await _end(reader, writer, cut.end)
            else:
                reply = await self._served(await _request(reader))
                writer.write(reply[: cut.at])
                await _end(reader, writer, cut.end)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _served(self, request: bytes) -> bytes:
        """What the service answers to these bytes and the end of the stream; nothing was sent, nothing is connected."""
        if not request:
            return b""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._service_port, limit=LIMIT)
        try:
            writer.write(request)
            writer.write_eof()
            async with asyncio.timeout(PATIENCE_S):
                return await reader.read()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(length)


async def _part(reader: asyncio.StreamReader, count: int) -> bytes:
    """So many bytes, or fewer from a client that gave up."""
    try:
        return await reader.readexactly(count)
    except asyncio.IncompleteReadError as short:
        return short.partial


async def _end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, end: End) -> None:
    match end:
        case End.FIN:
            pass
        case End.RST:
            await writer.drain()
            plain: socket.socket = writer.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        case End.STALL:
            with suppress(ConnectionResetError):
                while await reader.read(LIMIT):
                    pass
        case End.GARBAGE:
            writer.write(JUNK)
