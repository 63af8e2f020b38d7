"""Replies that come early: before the first byte left they are not ours, during the upload they end it, and a reset behind them is no loss."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from coatcheck.core.events import Accepted, Rejected
from coatcheck.core.operation import RemoteJobId
from coatcheck.seams import Clock, Faults, Point, Seams
from provider.rawserver import PATIENCE_S, Peer, RawServer, reply_of
from provider.sending import DISPATCH, Posted, request_to, send

ACCEPTED = reply_of(b'{"job_id":"job-1"}')
TOO_LARGE = reply_of(b"{}", status="413 Content Too Large")
LARGE = b"x" * (24 << 20)


class Gate(Clock, Faults):
    """Holds the client at its first look at the clock after `point`, until the other side has acted."""

    def __init__(self, point: Point) -> None:
        self._point: Point | None = point
        self._closed = False
        self.waiting = threading.Event()
        self.acted = threading.Event()

    def reached(self, point: Point, count: int = 0) -> None:
        if point is self._point:
            self._point, self._closed = None, True

    def boottime(self) -> float:
        if self._closed:
            self._closed = False
            self.waiting.set()
            assert self.acted.wait(PATIENCE_S)
        return super().boottime()

    @property
    def seams(self) -> Seams:
        return replace(Seams.real(), clock=self, faults=self)


@contextmanager
def acting(gate: Gate, act: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server in a thread that accepts one connection, acts while the client is held, and lets it go on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        done = threading.Event()

        def serve() -> None:
            accepted, _ = listening.accept()
            with accepted:
                assert gate.waiting.wait(PATIENCE_S)
                act(accepted)
                gate.acted.set()
                assert done.wait(PATIENCE_S)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            done.set()
            thread.join(PATIENCE_S)


def test_what_is_said_before_the_first_byte_left_is_heard_only_after_it() -> None:
    gate = Gate(Point.D6_CONNECTING)
    with acting(gate, lambda accepted: accepted.sendall(ACCEPTED)) as url:
        result = asyncio.run(send(request_to(url), seams=gate.seams))
    assert result.exchange.bytes_sent > 0
    assert result.reply == Accepted(dispatch_id=DISPATCH, remote_job_id=RemoteJobId("job-1"))


def test_a_refusal_counts_although_the_send_behind_it_meets_a_reset() -> None:
    gate = Gate(Point.D7_REQUEST_BYTES)

    def refuse_and_reset(accepted: socket.socket) -> None:
        accepted.recv(1000)
        accepted.sendall(TOO_LARGE)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()

    with acting(gate, refuse_and_reset) as url:
        result = asyncio.run(send(request_to(url, body=LARGE), seams=gate.seams))
    assert result.reply == Rejected(dispatch_id=DISPATCH, status=413)
    assert result.exchange.bytes_sent == 1 << 16


def test_the_head_of_a_refusal_already_ends_the_upload() -> None:
    head, body = TOO_LARGE[:-2], TOO_LARGE[-2:]

    async def play(peer: Peer) -> None:
        await peer.take(10_000)
        await peer.send(head)
        quiet = False
        while not quiet:
            before = len(peer.received)
            taking = asyncio.ensure_future(peer.take(before + (1 << 20)))
            await asyncio.wait([taking], timeout=0.3)
            taking.cancel()
            quiet = len(peer.received) == before
            assert len(peer.received) < len(LARGE)
        await peer.send(body)

    async def run() -> Posted:
        async with RawServer(play) as server:
            return await send(request_to(server.url, body=LARGE))

    result = asyncio.run(run())
    assert result.reply == Rejected(dispatch_id=DISPATCH, status=413)
    assert result.exchange.bytes_sent < len(LARGE)
