"""Connections that are kept for the next look: which may be asked again, which not, and that what comes unasked is nobody's answer."""

import asyncio
import socket
from collections.abc import Iterator
from unittest import mock

import pytest
import uvloop

from coatcheck.core.evidence import Exchange, Request
from coatcheck.provider.http import Gets
from coatcheck.provider.kept import Connection
from coatcheck.seams import Seams
from provider.certificates import server_side, trusting
from provider.rawserver import PATIENCE_S, Peer, Play, RawServer, reply_of
from provider.sending import TLS

JOB, OTHER = b'{"id":"job-1","status":"rendering"}', b'{"id":"job-2","status":"succeeded"}'
OK, UNASKED = reply_of(JOB, status="200 OK"), reply_of(OTHER, status="200 OK")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(JOB), JOB)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["standard", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as made:
        yield made


async def asked(peer: Peer, count: int) -> bool:
    """Read on until so many GETs came over this connection; False when the client ended it."""
    while peer.received.count(b"\r\n\r\n") < count:
        before = len(peer.received)
        await peer.take(before + 1)
        if len(peer.received) == before:
            return False
    return True


def saying(reply: bytes) -> Play:
    """The same to every GET, until the client ends the connection."""

    async def play(peer: Peer) -> None:
        count = 1
        while await asked(peer, count):
            await peer.send(reply)
            count += 1

    return play


def gets_of(server: RawServer) -> list[int]:
    """How many GETs came over each connection."""
    return [peer.received.count(b"GET ") for peer in server.peers]


async def look(gets: Gets, server: RawServer, *, timeout_s: float = 10) -> Exchange:
    return await gets.get(Request(method="GET", url=f"{server.url}/jobs/1"), timeout_s=timeout_s)


async def looks(server: RawServer, count: int = 2) -> list[Exchange]:
    async with Gets(tls=trusting(), seams=Seams.real()) as gets:
        return [await look(gets, server) for _ in range(count)]


@pytest.mark.parametrize("reply", [OK, CHUNKED, OK.replace(b"\r\n", b"\r\nConnection: Keep-Alive\r\n", 1)])
@pytest.mark.parametrize("is_secure", [False, True], ids=["clear", "tls"])
def test_looks_one_after_the_other_share_a_connection(runner: asyncio.Runner, reply: bytes, is_secure: bool) -> None:
    async def run() -> None:
        async with RawServer(saying(reply), tls=server_side() if is_secure else None) as server:
            assert [exchange.body for exchange in await looks(server, 3)] == [JOB] * 3
            assert gets_of(server) == [3]

    runner.run(run())


@pytest.mark.parametrize(
    "reply",
    [
        *(
            OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1),
            CHUNKED.replace(b"\r\n", b"\r\nConnection: close\r\n", 1),
        ),
        *(
            OK.replace(b"1.1", b"1.0"),
            OK + b"HTTP/1.1",
            CHUNKED + UNASKED,
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        ),
    ],
    ids=["close", "chunked_close", "old", "more", "another", "cut"],
)
def test_a_connection_that_is_done_for_is_not_asked_again(runner: asyncio.Runner, reply: bytes) -> None:
    async def run() -> None:
        async with RawServer(saying(reply)) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            for _ in range(2):
                await look(gets, server, timeout_s=0.5 if reply.endswith(b"{}") else 10)
            assert gets_of(server) == [1, 1]

    runner.run(run())


def test_what_comes_unasked_is_nobodys_answer(runner: asyncio.Runner) -> None:
    """It came between two looks, whole and well-formed; the connection is ended with it."""

    async def run() -> None:
        unasked = asyncio.Event()

        async def play(peer: Peer) -> None:
            await asked(peer, 1)
            await peer.send(OK)
            if len(server.peers) == 1:
                await unasked.wait()
                await peer.send(UNASKED)
            await peer.gone()

        server = RawServer(play)
        async with server, Gets(tls=TLS, seams=Seams.real()) as gets:
            await look(gets, server)
            unasked.set()
            with mock.patch("coatcheck.provider.kept.KEEP_S", 3600):
                await server.idle()
            assert (await look(gets, server)).body == JOB
            assert gets_of(server) == [1, 1]

    runner.run(run())


def test_what_came_unasked_and_unseen_is_nobodys_answer(runner: asyncio.Runner) -> None:
    """The event loop had no turn to see it before somebody asked."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(PATIENCE_S)
            request = Request(method="GET", url=f"http://127.0.0.1:{listening.getsockname()[1]}/jobs/1")
            async with Gets(tls=TLS, seams=Seams.real()) as gets:
                for _ in range(2):
                    look = asyncio.ensure_future(gets.get(request, timeout_s=10))
                    peer, _ = await asyncio.to_thread(listening.accept)
                    with peer:
                        await asyncio.to_thread(peer.recv, 65536)
                        peer.sendall(OK)
                        assert (await look).body == JOB
                        # no turn of the loop between this and what is asked next
                        peer.sendall(UNASKED)

    runner.run(run())


class Tap(asyncio.Transport):
    """Remembers whether it is read from."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def write(self, data: object) -> None:
        pass

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


def test_who_says_more_than_is_heard_has_to_wait(runner: asyncio.Runner) -> None:
    async def run() -> None:
        with socket.socket() as unused:
            connection, tap = Connection(unused), Tap()
            connection.connection_made(tap)
            connection.ask(b"GET / HTTP/1.1\r\n\r\n")
            connection.data_received(b"1")
            assert tap.calls == []
            connection.data_received(b"2")
            assert [await connection.receive(), await connection.receive()] == [b"1", b"2"]
            assert tap.calls == ["pause"]
            third = asyncio.ensure_future(connection.receive())
            await asyncio.sleep(0)
            assert tap.calls == ["pause", "resume"]
            connection.data_received(b"3")
            assert await third == b"3"
            assert connection.rest()

    runner.run(run())


def test_a_connection_with_something_left_to_hear_is_not_kept(runner: asyncio.Runner) -> None:
    async def run() -> None:
        with socket.socket() as unused:
            connection = Connection(unused)
            connection.connection_made(Tap())
            connection.ask(b"GET / HTTP/1.1\r\n\r\n")
            connection.data_received(OK)
            connection.data_received(UNASKED)
            assert await connection.receive() == OK
            assert not connection.rest()

    runner.run(run())


@pytest.mark.parametrize("is_secure", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("was_asked", [False, True], ids=["fresh", "kept"])
def test_a_look_that_is_given_up_at_any_turn_leaves_nothing_behind(
    runner: asyncio.Runner, is_secure: bool, was_asked: bool
) -> None:
    """Neither a watched descriptor, which whoever gets its number next would not hear through, nor a connection."""

    async def run() -> None:
        async with RawServer(saying(OK), tls=server_side() if is_secure else None) as server:
            turns, is_over = 0, False
            while not is_over:
                async with Gets(tls=trusting(), seams=Seams.real()) as gets:
                    if was_asked:
                        await look(gets, server)
                    given_up = asyncio.ensure_future(look(gets, server))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    is_over = given_up.done()
                    given_up.cancel()
                    await asyncio.wait([given_up])
                    assert (await look(gets, server)).body == JOB, turns
                turns += 1

    runner.run(run())


def test_a_connection_that_the_service_ends_meanwhile_is_not_asked_again(runner: asyncio.Runner) -> None:
    async def run() -> None:
        async def play(peer: Peer) -> None:
            await asked(peer, 1)
            await peer.send(OK)

        async with RawServer(play) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            for _ in range(3):
                assert (await look(gets, server)).body == JOB
                await server.idle()
            assert gets_of(server) == [1, 1, 1]

    runner.run(run())


def test_a_look_that_is_reset_while_it_is_sent_again_is_sent_twice_and_no_more(runner: asyncio.Runner) -> None:
    async def run() -> None:
        async def play(peer: Peer) -> None:
            await asked(peer, 1)
            peer.reset()

        async with RawServer(play) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            exchange = await look(gets, server)
            assert (exchange.status, exchange.failure) == (None, "reset")
            assert gets_of(server) == [1, 1]

    runner.run(run())


def test_nobody_is_sent_a_look_again_who_began_to_answer(runner: asyncio.Runner) -> None:
    async def run() -> None:
        async def play(peer: Peer) -> None:
            await asked(peer, 1)
            await peer.send(b"H")

        async with RawServer(play) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            assert (await look(gets, server)).failure == "closed"
            assert gets_of(server) == [1]

    runner.run(run())


def test_a_connection_that_nobody_needs_is_ended(runner: asyncio.Runner) -> None:
    async def run() -> None:
        async with RawServer(saying(OK)) as server, Gets(tls=TLS, seams=Seams.real()) as gets:
            with mock.patch("coatcheck.provider.kept.KEEP_S", 0.05):
                await asyncio.gather(*(look(gets, server) for _ in range(5)))
                await server.idle()
            assert (await look(gets, server)).body == JOB

    runner.run(run())


def test_connections_end_with_their_session_those_in_use_when_their_look_is_over(runner: asyncio.Runner) -> None:
    async def run() -> None:
        ended = asyncio.Event()

        async def play(peer: Peer) -> None:
            await asked(peer, 1)
            await peer.send(OK)
            if await asked(peer, 2):
                held.set()
                await ended.wait()
                await peer.send(OK)
                await peer.gone()

        held = asyncio.Event()
        async with RawServer(play) as server:
            async with Gets(tls=TLS, seams=Seams.real()) as gets:
                await asyncio.gather(look(gets, server), look(gets, server))
                last = asyncio.ensure_future(look(gets, server))
                await held.wait()
            ended.set()
            assert (await last).body == JOB
            await server.idle()
            with pytest.raises(RuntimeError, match="open client"):
                await look(gets, server)

    runner.run(run())
