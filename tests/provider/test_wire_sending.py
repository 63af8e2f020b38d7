"""The request of the one POST, over real sockets: what proves that nothing left, and what no clock or peer can make leave late."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coatcheck.core.events import Accepted, Doubted, NotSent, Throttled
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Faults, Point, Seams
from provider.rawserver import PATIENCE_S, Peer, RawServer, answering, reply_of
from provider.sending import DISPATCH, TLS, MovedClock, Posted, Stride, not_sent, request_to, send, watched

ACCEPTED = reply_of(b'{"job_id":"job-1"}')
LARGE = b'{"prompt":"' + b"x" * (24 << 20) + b'"}'


@pytest.mark.parametrize("ending", ["fin", "rst"])
def test_a_request_cut_after_any_byte_is_doubt(ending: str) -> None:
    cuts = [*range(1, 41), 1000, 100_000, 300_000]

    async def run() -> list[Posted]:
        left = iter(cuts)

        async def play(peer: Peer) -> None:
            await peer.take(next(left))
            peer.close() if ending == "fin" else peer.reset()

        async with RawServer(play) as server:
            return [await send(request_to(server.url, body=b"x" * 400_000)) for _ in cuts]

    for cut, result in zip(cuts, asyncio.run(run()), strict=True):
        assert isinstance(result.reply, Doubted), cut
        assert result.reply.cause in {"reset", "closed"}
        assert result.exchange.bytes_sent >= cut
        assert result.exchange.status is None


@pytest.mark.parametrize("ending", ["fin", "rst"])
def test_a_connection_dropped_at_accept_is_judged_by_the_bytes_that_left(ending: str) -> None:
    async def play(peer: Peer) -> None:
        peer.close() if ending == "fin" else peer.reset()

    async def run() -> list[Posted]:
        async with RawServer(play) as server:
            return [await send(request_to(server.url)) for _ in range(30)]

    for result in asyncio.run(run()):
        expected = NotSent if result.exchange.bytes_sent == 0 else Doubted
        assert isinstance(result.reply, expected)


def test_a_window_that_has_passed_sends_nothing_and_does_not_even_connect() -> None:
    async def run() -> tuple[Posted, int]:
        async with RawServer(answering(ACCEPTED)) as server:
            return await send(request_to(server.url), send_s=-0.001), len(server.peers)

    result, connections = asyncio.run(run())
    assert isinstance(result.reply, NotSent)
    assert connections == 0


def test_a_process_that_slept_past_the_window_while_connecting_sends_nothing() -> None:
    clock = MovedClock()
    seams = replace(Seams.real(), clock=clock, faults=Stride(clock, Point.D6_CONNECTING, 5.5))

    async def run() -> tuple[Posted, bytes]:
        async with RawServer(Peer.gone) as server:
            result = await send(request_to(server.url), seams=seams)
            await server.met(1)
            return result, b"".join(peer.received for peer in server.peers)

    result, received = asyncio.run(run())
    assert result.reply == not_sent("send_window_passed")
    assert result.exchange.stage is Stage.CONNECTED
    assert received == b""


def test_a_service_that_stops_reading_never_gets_the_rest_after_the_limit() -> None:
    async def run() -> tuple[Posted, Peer]:
        over = asyncio.Event()

        async def play(peer: Peer) -> None:
            await over.wait()
            await peer.gone()

        async with RawServer(play) as server:
            result = await send(request_to(server.url, body=LARGE), limit_s=0.5)
            over.set()
            await server.idle()
            return result, server.peers[0]

    result, peer = asyncio.run(run())
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="timeout")
    assert result.exchange.stage is Stage.HEADERS_BEGUN
    assert 0 < result.exchange.bytes_sent < len(LARGE)
    assert peer.reset_by_client
    assert len(peer.received) <= result.exchange.bytes_sent


def test_nothing_more_is_sent_by_a_process_that_slept_past_the_end() -> None:
    clock = MovedClock()
    seams = replace(Seams.real(), clock=clock, faults=Stride(clock, Point.D7_REQUEST_BYTES, 11.0))

    async def run() -> Posted:
        async with RawServer(Peer.gone) as server:
            result = await send(request_to(server.url, body=LARGE), seams=seams)
            await server.met(1)
            return result

    result = asyncio.run(run())
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="timeout")
    assert result.exchange.bytes_sent <= 1 << 16


def test_a_reply_that_is_here_already_counts_however_late_the_process_wakes() -> None:
    clock = MovedClock()
    seams = replace(Seams.real(), clock=clock)

    async def run() -> Posted:
        async def play(peer: Peer) -> None:
            await peer.request()
            clock.ahead = 60.0
            await peer.send(ACCEPTED)

        async with RawServer(play) as server:
            return await send(request_to(server.url), seams=seams)

    assert isinstance(asyncio.run(run()).reply, Accepted)


def test_the_end_is_never_later_than_the_mark_allowed() -> None:
    window = SendWindow(send_by=105.0, limit_s=60.0)
    assert window.end_by(101.0) == 161.0
    assert window.end_by(400.0) == 165.0


def test_a_cancelled_post_leaves_its_evidence_and_resets_the_connection() -> None:
    async def run() -> tuple[Exchange, Peer]:
        arrived = asyncio.Event()

        async def play(peer: Peer) -> None:
            await peer.request()
            arrived.set()
            await peer.gone()

        async with RawServer(play) as server:
            seams = Seams.real()
            progress = Progress(seams.clock)
            window = SendWindow(send_by=seams.clock.boottime() + 5, limit_s=10)
            going = post(request_to(server.url), window=window, progress=progress, tls=TLS, seams=seams)
            task = asyncio.ensure_future(going)
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.idle()
            return progress.exchange(), server.peers[0]

    exchange, peer = asyncio.run(run())
    assert exchange.failure == "cancelled"
    assert exchange.stage is Stage.BODY_SENT
    assert exchange.bytes_sent == len(peer.received)
    assert peer.reset_by_client


@pytest.mark.parametrize("point", [Point.D6_CONNECTING, Point.D7_REQUEST_BYTES, Point.D9_RESPONSE_BYTES])
def test_a_surprise_is_raised_and_the_evidence_stays(point: Point) -> None:
    class Bomb(Faults):
        def reached(self, point_: Point, count: int = 0) -> None:
            if point_ is point:
                raise LookupError("boom")

    async def run() -> Exchange:
        async with RawServer(answering(ACCEPTED)) as server:
            seams = watched(Seams.real(), Bomb())
            progress = Progress(seams.clock)
            window = SendWindow(send_by=seams.clock.boottime() + 5, limit_s=10)
            with pytest.raises(LookupError):
                await post(request_to(server.url), window=window, progress=progress, tls=TLS, seams=seams)
            await server.met(0 if point is Point.D6_CONNECTING else 1)
            return progress.exchange()

    exchange = asyncio.run(run())
    assert exchange.failure == "unforeseen"
    assert (exchange.bytes_sent == 0) == (point is Point.D6_CONNECTING)


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[Posted, int]:
        async with (
            RawServer(answering(reply_of(b"", status="429 Slow"))) as trap,
            RawServer(answering(ACCEPTED)) as server,
        ):
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, trap.url)
            return await send(request_to(server.url)), len(trap.peers)

    result, trapped = asyncio.run(run())
    assert isinstance(result.reply, Accepted)
    assert trapped == 0


def test_a_throttled_post_says_when_to_come_back() -> None:
    async def run() -> Posted:
        reply = reply_of(b"", status="429 Too Many Requests", headers="Retry-After: 17\r\n")
        async with RawServer(answering(reply)) as server:
            return await send(request_to(server.url))

    assert asyncio.run(run()).reply == Throttled(dispatch_id=DISPATCH, retry_after_s=17.0)


def test_neither_request_nor_evidence_shows_what_is_secret() -> None:
    async def run() -> str:
        async with RawServer(answering(reply_of(b'{"job_id":"job-1","echo":"secret-key"}'))) as server:
            request = request_to(server.url, body=b'{"prompt":"secret-prompt"}')
            return repr(request) + repr((await send(request)).exchange)

    shown = asyncio.run(run())
    assert "secret-key" not in shown
    assert "secret-prompt" not in shown


STOPPED = Path(__file__).with_name("stopped_sender.py")


def poll(condition: Callable[[], bool]) -> None:
    tick = threading.Event()
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never came"
        tick.wait(0.01)


@pytest.mark.parametrize(
    ("point", "most", "failures"),
    [("D6", 0, {"send_window_passed", "connect_timeout"}), ("D7", 1 << 16, {"timeout"})],
    ids=["connecting", "sending"],
)
def test_a_stopped_process_sends_nothing_when_it_wakes_after_its_time(
    point: str, most: int, failures: set[str]
) -> None:
    """A real process stops itself (SIGSTOP) at the point and is continued after the window; the service counts what it got."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with subprocess.Popen([sys.executable, str(STOPPED), url, point], stdout=subprocess.PIPE, text=True) as sender:
            _, status = os.waitpid(sender.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            ended = time.clock_gettime(time.CLOCK_BOOTTIME) + 0.6
            poll(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > ended)
            sender.send_signal(signal.SIGCONT)
            said, _ = sender.communicate(timeout=PATIENCE_S)
        failure, sent = said.split()
        assert failure in failures
        assert received_by(listening) <= int(sent) <= most


def received_by(listening: socket.socket) -> int:
    """Bytes that came on the one connection before it was reset; 0 if there was none."""
    listening.setblocking(False)
    count = 0
    try:
        accepted, _ = listening.accept()
        with accepted:
            while part := accepted.recv(1 << 16):
                count += len(part)
    except (BlockingIOError, ConnectionResetError):
        pass
    return count
