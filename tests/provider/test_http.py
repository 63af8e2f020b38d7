"""GETs over real sockets: a status only where one was received, bounds on everything, and no way to send anything else."""

import asyncio
import gzip
from dataclasses import replace
from typing import Any

import pytest

from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.provider.http import Gets
from coatcheck.seams import Faults, Point, Seams
from provider.certificates import server_side, trusting
from provider.rawserver import Peer, Play, RawServer, answering, reply_of
from provider.sending import TLS, Recorder

SNAPSHOT = b'{"id":"job-1","status":"rendering"}'
OK = reply_of(SNAPSHOT, status="200 OK")


def looking_at(url: str) -> Request:
    return Request(method="GET", url=f"{url}/api/v1/jobs/job-1?wait=30", headers=(("Authorization", "Bearer secret"),))


def looked(play: Play, *, timeout_s: float = 10.0, seams: Seams | None = None) -> Exchange:
    async def run() -> Exchange:
        async with RawServer(play) as server, Gets(tls=TLS, seams=seams or Seams.real()) as gets:
            return await gets.get(looking_at(server.url), timeout_s=timeout_s)

    return asyncio.run(run())


def test_a_whole_reply_is_an_exchange_with_its_body() -> None:
    recorder = Recorder()
    exchange = looked(answering(OK), seams=replace(Seams.real(), faults=recorder))
    assert (exchange.status, exchange.complete, exchange.failure) == (200, True, None)
    assert exchange.body == SNAPSHOT
    assert exchange.stage is Stage.BODY_RECEIVED
    assert exchange.header("content-type") == "application/json"
    assert recorder.seen == [(Point.O3_GET_SENT, 0), (Point.O4_RESPONSE_BYTES, len(OK))]


def test_the_path_is_sent_as_it_is_written() -> None:
    async def run() -> bytes:
        async with RawServer(answering(OK)) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            url = f"{server.url}/jobs/a%2Fb%2E%2E%3F%23%25?wait=1"
            await gets.get(Request(method="GET", url=url), timeout_s=5)
            return bytes(server.peers[0].received)

    sent = asyncio.run(run())
    assert sent.startswith(b"GET /jobs/a%2Fb%2E%2E%3F%23%25?wait=1 HTTP/1.1\r\n")
    assert b"\r\nConnection:" not in sent


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "get"])
def test_nothing_but_a_get_can_be_sent(method: str) -> None:
    async def run() -> int:
        async with RawServer(answering(OK)) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            with pytest.raises(ValueError, match="expected a GET"):
                await gets.get(replace(looking_at(server.url), method=method), timeout_s=5)
            return len(server.peers)

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"url": "ftp://127.0.0.1/"},
        {"url": "http:///jobs"},
        {"url": "http://127.0.0.1\n.example/jobs"},
        {"url": "http://127.0.0.1/a b"},
        {"headers": (("X", "a\r\nY: b"),)},
        {"headers": (("Content-Length", "9"),)},
    ],
    ids=["scheme", "host", "newline", "space", "split", "length"],
)
def test_what_cannot_be_said_in_one_request_is_not_sent(change: dict[str, Any]) -> None:
    async def run() -> tuple[Exchange, int]:
        async with RawServer(answering(OK)) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            return await gets.get(replace(looking_at(server.url), **change), timeout_s=5), len(server.peers)

    exchange, peers = asyncio.run(run())
    assert (exchange.failure, exchange.bytes_received, peers) == ("bad_request", 0, 0)


def test_a_redirect_is_an_answer_and_not_an_errand() -> None:
    async def run() -> tuple[Exchange, int]:
        async with RawServer(answering(OK)) as other:
            moved = reply_of(b"", status="302 Found", headers=f"Location: {other.url}/\r\n")
            async with RawServer(answering(moved)) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
                return await gets.get(looking_at(server.url), timeout_s=5), len(other.peers)

    exchange, followed = asyncio.run(run())
    assert exchange.status == 302
    assert followed == 0


def test_a_reply_cut_at_any_byte_is_never_whole() -> None:
    async def run() -> list[Exchange]:
        cuts = iter([cut for cut in range(len(OK)) for _ in range(2)])

        async def play(peer: Peer) -> None:
            await peer.request()
            await peer.send(OK[: next(cuts)])

        async with RawServer(play) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            return [await gets.get(looking_at(server.url), timeout_s=5) for _ in range(0, len(OK), 2)]

    for exchange in asyncio.run(run()):
        assert not exchange.complete
        assert exchange.failure in {"closed", "malformed_reply", "reset"}
        assert exchange.status in {None, 200}


@pytest.mark.parametrize(
    ("reply", "is_reset", "failure"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n" + SNAPSHOT, False, None),
        (b"HTTP/1.1 200 OK\r\n\r\n" + SNAPSHOT, True, "reset"),
        (OK[:-1], False, "closed"),
        (OK[:-1], True, "reset"),
    ],
    ids=["ended", "ended by a reset", "cut", "cut by a reset"],
)
def test_an_end_is_told_from_a_reset_which_makes_nothing_whole(
    reply: bytes, is_reset: bool, failure: str | None
) -> None:
    class Hearing(Faults):
        def reached(self, point: Point, count: int = 0) -> None:
            if (point, count) == (Point.O4_RESPONSE_BYTES, len(reply)):
                heard.set()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(reply)
        await heard.wait()
        if is_reset:
            peer.reset()

    heard = asyncio.Event()
    exchange = looked(play, seams=replace(Seams.real(), faults=Hearing()))
    assert (exchange.status, exchange.failure, exchange.complete) == (200, failure, failure is None)
    assert not exchange.framed


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\x00" * 300,
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300_000 + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
    ],
    ids=["ssh", "zeros", "status", "length", "chunk", "long_header", "many_headers", "not_gzip", "brotli"],
)
def test_a_malformed_answer_is_a_failure_and_no_invented_status(garbage: bytes) -> None:
    exchange = looked(answering(garbage))
    assert not exchange.complete
    assert exchange.failure in {"malformed_reply", "closed", "reset", "undecodable"}
    assert exchange.status in {None, 200}


def test_a_compressed_reply_is_read_within_the_bound() -> None:
    headers = "Content-Encoding: gzip\r\n"
    assert looked(answering(reply_of(gzip.compress(SNAPSHOT), headers=headers))).body == SNAPSHOT
    bomb = looked(answering(reply_of(gzip.compress(b" " * (64 << 20)), headers=headers)))
    assert bomb.failure == "undecodable"
    assert len(bomb.body) < 1 << 20


def test_an_endless_body_is_not_read_on() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        gone = asyncio.ensure_future(peer.gone())
        while not gone.done():
            try:
                await peer.send(b" " * 65536)
            except ConnectionError:
                break
            await asyncio.wait([gone], timeout=0.001)
        await gone

    exchange = looked(play)
    assert exchange.failure == "too_large"
    assert len(exchange.body) == 1 << 20


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"], ids=["silent", "begun"])
def test_a_look_ends_at_its_time(said: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(said)
        await peer.gone()

    exchange = looked(play, timeout_s=0.3)
    assert exchange.failure == "timeout"
    assert exchange.body == said[-1:].replace(b"\n", b"")


def test_the_answer_to_a_look_that_ended_is_nobody_elses() -> None:
    """Its connection is closed and no other look is sent over it."""
    ended = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        if len(server.peers) == 1:
            await ended.wait()
            await peer.gone()
        else:
            await peer.send(OK)

    async def run() -> tuple[Exchange, Exchange, int]:
        async with server, Gets(tls=TLS, seams=Seams.real()) as gets:
            first = await gets.get(looking_at(server.url), timeout_s=0.3)
            ended.set()
            await server.idle()
            return first, await gets.get(looking_at(server.url), timeout_s=5), len(server.peers)

    server = RawServer(play)
    first, second, peers = asyncio.run(run())
    assert (first.failure, second.status, peers) == ("timeout", 200, 2)


def test_a_look_that_is_given_up_closes_its_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.gone()

    async def run() -> None:
        async with RawServer(play) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            look = asyncio.ensure_future(gets.get(looking_at(server.url), timeout_s=30))
            await asked.wait()
            look.cancel()
            with pytest.raises(asyncio.CancelledError):
                await look
            await server.idle()

    asked = asyncio.Event()
    asyncio.run(run())


def test_an_idle_connection_that_ends_when_it_is_used_again_is_replaced() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        if len(server.peers) == 1:
            await peer.take(len(peer.received) * 2)

    async def run() -> list[Exchange]:
        async with server, Gets(tls=TLS, seams=Seams.real()) as gets:
            return [await gets.get(looking_at(server.url), timeout_s=5) for _ in range(2)]

    server = RawServer(play)
    assert [exchange.status for exchange in asyncio.run(run())] == [200, 200]
    assert len(server.peers) == 2


def test_a_look_that_is_never_answered_is_sent_twice_and_no_more() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()

    async def run() -> Exchange:
        async with server, Gets(tls=TLS, seams=Seams.real()) as gets:
            return await gets.get(looking_at(server.url), timeout_s=5)

    server = RawServer(play)
    exchange = asyncio.run(run())
    assert (exchange.status, exchange.failure, exchange.stage) == (None, "closed", Stage.BODY_SENT)
    assert len(server.peers) == 2


def test_refused_and_untrusted_are_values() -> None:
    async def run() -> tuple[Exchange, Exchange, Exchange]:
        async with RawServer(answering(OK)) as gone:
            url = gone.url
        async with RawServer(answering(OK), tls=server_side()) as server:
            async with Gets(tls=TLS, seams=Seams.real()) as gets:
                refused = await gets.get(looking_at(url), timeout_s=5)
                untrusted = await gets.get(looking_at(server.url), timeout_s=5)
            async with Gets(tls=trusting(), seams=Seams.real()) as gets:
                return refused, untrusted, await gets.get(looking_at(server.url), timeout_s=5)

    refused, untrusted, trusted = asyncio.run(run())
    assert refused.failure == "refused"
    assert untrusted.failure == "certificate_refused"
    assert trusted.status == 200


def test_a_certificate_for_another_name_is_refused() -> None:
    async def run() -> Exchange:
        async with (
            RawServer(answering(OK), tls=server_side()) as server,
            Gets(tls=trusting(), seams=Seams.real()) as gets,
        ):
            return await gets.get(looking_at(server.url.replace("localhost", "127.0.0.1")), timeout_s=5)

    assert asyncio.run(run()).failure == "certificate_refused"


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[Exchange, int]:
        async with RawServer(answering(OK)) as trap, RawServer(answering(OK)) as server:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, trap.url)
            async with Gets(tls=TLS, seams=Seams.real()) as gets:
                return await gets.get(looking_at(server.url), timeout_s=5), len(trap.peers)

    exchange, trapped = asyncio.run(run())
    assert exchange.status == 200
    assert trapped == 0


def test_one_process_holds_a_thousand_looks_at_once() -> None:
    held = 1000

    async def run() -> list[Exchange]:
        everyone = asyncio.Event()
        waiting = 0

        async def play(peer: Peer) -> None:
            nonlocal waiting
            await peer.request()
            waiting += 1
            if waiting == held:
                everyone.set()
            await everyone.wait()
            await peer.send(OK)

        async with RawServer(play) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            return await asyncio.gather(*(gets.get(looking_at(server.url), timeout_s=30) for _ in range(held)))

    assert {exchange.status for exchange in asyncio.run(run())} == {200}
