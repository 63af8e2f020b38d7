"""A server of bytes for one test: each connection is played by a function that reads, writes, ends and resets as it likes."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

PATIENCE_S = 20.0
_TURNS = 10
"""Turns of the loop after which a connection is accepted whose client may be gone already: asyncio takes four."""


class Peer:
    """One accepted connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.received = bytearray()
        self.reset_by_client = False

    async def take(self, count: int) -> None:
        """Read until `count` bytes are here, or the stream ends."""
        while len(self.received) < count and (part := await self._part(count - len(self.received))):
            self.received += part

    async def request(self) -> None:
        """Read one whole request, as its Content-Length says."""
        while b"\r\n\r\n" not in self.received and (part := await self._part(65536)):
            self.received += part
        head, _, _ = bytes(self.received).partition(b"\r\n\r\n")
        lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await self.take(len(head) + 4 + (lengths[0] if lengths else 0))

    async def gone(self) -> None:
        """Read whatever still comes until the client is gone."""
        while part := await self._part(65536):
            self.received += part

    async def _part(self, limit: int) -> bytes:
        try:
            return await self._reader.read(limit)
        except ConnectionResetError:
            self.reset_by_client = True
            return b""

    async def send(self, data: bytes) -> None:
        """Hand `data` to the kernel."""
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        """End the connection with RST."""
        plain: socket.socket = self._writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """End the connection with FIN (under TLS: with a close notice first)."""
        self._writer.close()

    def abort(self) -> None:
        """End the connection at once (under TLS: without a close notice)."""
        self._writer.transport.abort()


Play = Callable[[Peer], Awaitable[None]]


class RawServer:
    """`async with RawServer(play) as server: ... server.url ... server.peers`. Small receive buffer, so that stalls stall early."""

    def __init__(self, play: Play, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._play = play
        self._tls = tls
        self._host = host
        self.peers: list[Peer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._came = asyncio.Event()

    async def __aenter__(self) -> Self:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        listening.bind((self._host, 0))
        self.port: int = listening.getsockname()[1]
        self._server = await asyncio.start_server(self._accept, sock=listening, ssl=self._tls, limit=4096)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await self.idle()
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{'localhost' if self._tls else self._host}:{self.port}"

    async def met(self, count: int) -> None:
        """Wait until so many connections came and were played to their end, for a client that may be gone before they are accepted."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.peers) < count:
                self._came.clear()
                await self._came.wait()
        await self.idle()

    async def idle(self) -> None:
        """Wait until every connection so far was played to its end."""
        async with asyncio.timeout(PATIENCE_S):
            while self._tasks:
                await asyncio.wait(self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        self._came.set()
        task = asyncio.ensure_future(self._run(peer, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, peer: Peer, writer: asyncio.StreamWriter) -> None:
        try:
            await self._play(peer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def answering(reply: bytes) -> Play:
    """Read the whole request, then answer and close."""

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(reply)

    return play


def reply_of(
    body: bytes, *, status: str = "202 Accepted", headers: str = "Content-Type: application/json\r\n"
) -> bytes:
    """A reply with a Content-Length."""
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body
