"""A raw HTTP origin on loopback whose every byte a test decides, and the room under test set up against it."""

import asyncio
import socket as sockets
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coatcheck.delivery.addresses import HostPolicy, origin_of
from coatcheck.delivery.fetch import Deliverer
from coatcheck.delivery.file_sink import INCOMING, FileSink
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import NotStored, OutputSource, Stored
from coatcheck.seams import Faults, Point, Seams

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
OPERATION = "0198c0de-0000-7000-8000-000000000001"
Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Origin:
    """A running server: its port and the heads of the requests it saw."""

    port: int
    scheme: str
    host: str
    heads: list[str] = field(default_factory=list)

    def url(self, path: str = "/out.png?signature=SECRET") -> str:
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    @property
    def policy(self) -> HostPolicy:
        return HostPolicy(own_origin=origin_of(self.url("/")))

    def output(self, **changes: Any) -> OutputSource:
        plain = OutputSource(
            operation_id=OPERATION,
            tenant_id="tenant-a",
            index=0,
            url=self.url(),
            content_type="image/png",
            bytes=None,
            sha256=None,
        )
        return replace(plain, **changes)


@asynccontextmanager
async def serving(
    answer: Answer, *, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None, name: str | None = None
) -> AsyncIterator[Origin]:
    """Serve until the block ends; handlers that still run then are cancelled."""
    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                origin.heads.append(head)
                await answer(head.split(" ", 2)[1], writer)
        finally:
            running.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, address, 0, ssl=tls)
    port = int(server.sockets[0].getsockname()[1])
    origin = Origin(port=port, scheme="https" if tls else "http", host=name or address)
    try:
        yield origin
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


def response(body: bytes = PNG, *, status: str = "200 OK", headers: Sequence[str] = (), length: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if length else []), "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(body: bytes, *, size: int = 1000) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + coded


def sending(data: bytes, *, reset: bool = False) -> Answer:
    """Send `data` and end the connection, in order or by a reset."""

    async def answer(_path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if reset:
            raw: sockets.socket = writer.get_extra_info("socket")
            raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    return answer


def redirecting(location: str, *, status: str = "302 Found") -> Answer:
    return sending(response(b"", status=status, headers=[f"Location: {location}"]))


def silent_after(data: bytes) -> Answer:
    """Send `data` and say no more."""

    async def answer(_path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await asyncio.Event().wait()

    return answer


silent = silent_after(response(PNG)[:5000])


class Recorder(Faults):
    """Remembers the points passed, and sets an event at one of them."""

    def __init__(self, wanted: Point | None = None) -> None:
        self.seen: list[Point] = []
        self.event = asyncio.Event()
        self._wanted = wanted

    def reached(self, point: Point, count: int = 0) -> None:
        self.seen.append(point)
        if point == self._wanted:
            self.event.set()


async def deliver(
    output: OutputSource,
    root: Path,
    policy: HostPolicy,
    *,
    limits: Limits | None = None,
    seams: Seams | None = None,
    tls: ssl.SSLContext | None = None,
) -> Stored | NotStored:
    seams = seams or Seams.real()
    sink = FileSink(root, seams=seams)
    room = Deliverer(sink=sink, policy=policy, limits=limits or Limits(), seams=seams, tls=tls)
    return await room.deliver(output)


def run_against(
    answer: Answer, root: Path, declared: dict[str, Any] | None = None, limits: Limits | None = None
) -> Stored | NotStored:
    async def story() -> Stored | NotStored:
        async with serving(answer) as origin:
            return await deliver(origin.output(**(declared or {})), root, origin.policy, limits=limits)

    return asyncio.run(story())


def final_objects(root: Path) -> list[Path]:
    """Every file outside the folder of temporaries."""
    return sorted(path for path in root.rglob("*") if path.is_file() and INCOMING not in path.parts)


def temporaries(root: Path) -> list[Path]:
    return sorted((root / INCOMING).glob("*"))
