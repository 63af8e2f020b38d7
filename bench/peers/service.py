"""A render service that is never the bottleneck, in a process of its own: a plain asyncio protocol without any fault, which counts.

It speaks what the Genace adapter needs and nothing more. A job is running at its first look and done at its second one. What it counted is
the verdict on every contestant: how many POSTs each operation caused.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from coatcheck.seams import Seams

CREATE_PATH = b"/api/v1/jobs"
JOB_PATH = CREATE_PATH + b"/"
TALLY_PATH = b"/tally"
LOOKS = 2
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"
OUTPUT = b"\x89PNG\r\n\x1a\n" + bytes(56)


@dataclass(slots=True, kw_only=True)
class Books:
    """What was asked of the service. `tell` is called once, when `expected` operations have been told that their job is done."""

    expected: int
    now: Callable[[], float]
    tell: Callable[[], None]
    base_url: str = ""
    posts: Counter[str] = field(default_factory=Counter)
    looks: list[int] = field(default_factory=list)
    done: int = 0
    first_post_at: float = 0.0
    last_done_at: float = 0.0

    def create(self, body: bytes) -> bytes:
        """The reply to a POST: a new job, whatever was asked before."""
        if not self.looks:
            self.first_post_at = self.now()
        self.posts[json.loads(body)["prompt"]] += 1
        self.looks.append(0)
        return b'{"job_id": "job-%d", "status": "queued"}' % len(self.looks)

    def look(self, job_id: bytes) -> bytes | None:
        """The reply to a look, None where there is no such job."""
        number = int(job_id.removeprefix(b"job-"))
        if not 0 < number <= len(self.looks):
            return None
        self.looks[number - 1] += 1
        seen = self.looks[number - 1]
        if seen < LOOKS:
            return b'{"id": "job-%d", "status": "running"}' % number
        if seen == LOOKS:
            self._finish()
        url = f"{self.base_url}/outputs/{number}".encode()
        return b'{"id": "job-%d", "status": "succeeded", "outputs": [{"url": "%b"}]}' % (number, url)

    def _finish(self) -> None:
        self.done += 1
        if self.done == self.expected:
            self.last_done_at = self.now()
            self.tell()

    def tally(self) -> dict[str, Any]:
        """What the measurement is told."""
        return {
            "posts": self.posts.total(),
            "operations": len(self.posts),
            "repeated": sum(count > 1 for count in self.posts.values()),
            "looks": sum(self.looks),
            "done": self.done,
            "first_post_at": self.first_post_at,
            "last_done_at": self.last_done_at,
        }


class Exchange(asyncio.Protocol):
    """One connection; requests are answered in their order, and it is kept open unless the client asks otherwise."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to answer on."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - asyncio's promise for a stream
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole by now."""
        self._buffer += data
        while (end := self._buffer.find(HEAD_END)) >= 0:
            head = self._buffer[:end]
            lowered = head.lower()
            whole = end + len(HEAD_END) + _length(lowered)
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end + len(HEAD_END) : whole], self._buffer[whole:]
            self._answer(head, body, is_last=b"\r\nconnection: close" in lowered)

    def _answer(self, head: bytes, body: bytes, *, is_last: bool) -> None:
        method, target, _ = head.split(b" ", 2)
        status, content = self._reply(method, target.partition(b"?")[0], body)
        if self._transport is None:
            return
        kind = b"image/png" if content is OUTPUT else b"application/json"
        last = b"Connection: close\r\n" if is_last else b""
        self._transport.write(
            b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b"
            % (status, status.phrase.encode(), kind, len(content), last, content)
        )
        if is_last:
            self._transport.close()

    def _reply(self, method: bytes, path: bytes, body: bytes) -> tuple[HTTPStatus, bytes]:
        if method == b"POST" and path == CREATE_PATH:
            return HTTPStatus.CREATED, self._books.create(body)
        if path.startswith(JOB_PATH) and (found := self._books.look(path.removeprefix(JOB_PATH))) is not None:
            return HTTPStatus.OK, found
        if path == TALLY_PATH:
            return HTTPStatus.OK, json.dumps(self._books.tally()).encode()
        if path.startswith(b"/outputs/"):
            return HTTPStatus.OK, OUTPUT
        return HTTPStatus.NOT_FOUND, b"{}"


def _length(head: bytes) -> int:
    at = head.find(LENGTH)
    return int(head[at + len(LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def serve(expected: int) -> None:
    """Listen on a free port of loopback, say where, and say `done` when all is done; ends when it is killed."""
    books = Books(expected=expected, now=Seams.real().clock.boottime, tell=lambda: _say("done"))
    server = await asyncio.get_running_loop().create_server(lambda: Exchange(books), "127.0.0.1", 0, backlog=4096)
    books.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    _say(books.base_url)
    with suppress(asyncio.CancelledError):
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
