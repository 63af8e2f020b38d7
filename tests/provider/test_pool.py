"""Connections that wait: which is taken first, how long they wait, and that nothing is left of them. On virtual time, over transports of the test's own."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from coatcheck.provider.kept import KEEP_S, Connection, Pool
from coatcheck.provider.origin import Origin, split_url
from simulation.loop import EndedError, VirtualLoop, passing
from simulation.seeded import SimClock

ORIGIN, _ = split_url("http://service.example")
OTHER, _ = split_url("http://other.example")


class Ending(asyncio.Transport):
    """Ends when it is told to, and says so in the next turn, as asyncio's own do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.is_aborted = False
        self.is_lost = False

    def write(self, data: object) -> None:
        pass

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            asyncio.get_running_loop().call_soon(self.lose)

    def lose(self) -> None:
        """It has ended."""
        self.is_lost = True
        self._connection.connection_lost(None)


class Scene:
    """A pool on virtual time."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.pool = Pool(SimClock(self.loop))
        self._open = ExitStack()

    def connection(self) -> tuple[Connection, Ending]:
        """One that is connected, and silent."""
        near, far = socket.socketpair()
        near.setblocking(False)
        self._open.enter_context(near)
        self._open.enter_context(far)
        made = Connection(near)
        transport = Ending(made)
        made.connection_made(transport)
        return made, transport

    def kept(self, origin: Origin = ORIGIN) -> tuple[Connection, Ending]:
        """One that waits for its next request."""
        made, transport = self.connection()
        self.pool.keep(origin, made)
        return made, transport

    def play(self, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.loop.run_until_complete(story())

    def stands_still_after(self) -> float:
        """Seconds until nothing can happen any more. Raises EndedError where something goes on without end."""
        began = self.loop.time()
        with pytest.raises(EndedError, match="deadlock"):
            self.loop.run_until_complete(self.loop.create_future())
        return self.loop.time() - began

    def end(self) -> None:
        self.loop.end([])
        self._open.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.end()


def test_the_one_that_was_used_last_is_used_next(scene: Scene) -> None:
    async def story() -> None:
        first, _ = scene.kept()
        second, _ = scene.kept()
        scene.kept(OTHER)
        assert [scene.pool.take(ORIGIN) for _ in range(3)] == [second, first, None]

    scene.play(story)


def test_it_waits_for_its_time_at_least_and_for_twice_that_at_most(scene: Scene) -> None:
    async def story() -> None:
        _, first = scene.kept()
        await passing(KEEP_S - 5)
        _, second = scene.kept(OTHER)
        ended = [(first.is_aborted, second.is_aborted)]
        for seconds in (6, KEEP_S):
            await passing(seconds)
            ended.append((first.is_aborted, second.is_aborted))
        assert ended == [(False, False), (False, False), (True, True)]

    scene.play(story)


def test_of_two_that_wait_the_older_one_ends_first(scene: Scene) -> None:
    async def story() -> None:
        _, old = scene.kept()
        await passing(KEEP_S + 1)
        young, transport = scene.kept()
        await passing(KEEP_S)
        assert (old.is_aborted, transport.is_aborted) == (True, False)
        assert scene.pool.take(ORIGIN) is young

    scene.play(story)


def test_nobody_looks_after_connections_where_there_are_none(scene: Scene) -> None:
    """Neither of those that ended by themselves nor of those that grew old anything is kept."""

    async def story() -> None:
        _, ended = scene.kept()
        scene.kept(OTHER)
        ended.lose()

    scene.play(story)
    assert scene.stands_still_after() == 2 * KEEP_S


def test_the_end_waits_until_all_have_ended_and_leaves_no_timer(scene: Scene) -> None:
    async def story() -> None:
        transports = [scene.kept(origin)[1] for origin in (ORIGIN, OTHER)]
        await scene.pool.close()
        assert all(transport.is_lost for transport in transports)

    scene.play(story)
    assert scene.stands_still_after() == 0


def test_what_is_handed_back_after_the_end_is_ended(scene: Scene) -> None:
    async def story() -> None:
        await scene.pool.close()
        _, late = scene.kept()
        assert late.is_aborted
        assert scene.pool.take(ORIGIN) is None

    scene.play(story)
    assert scene.stands_still_after() == 0


def test_who_spoke_unasked_is_not_asked_in_the_very_turn_either(scene: Scene) -> None:
    """What it said was taken from the socket, which is silent again; its transport ends it in a turn that did not come yet."""

    async def story() -> None:
        connection, transport = scene.kept()
        connection.data_received(b"HTTP/1.1 200 OK\r\n")
        assert transport.is_aborted
        assert not transport.is_lost
        assert scene.pool.take(ORIGIN) is None

    scene.play(story)


def test_what_has_ended_is_not_waited_for(scene: Scene) -> None:
    async def story() -> None:
        connection, transport = scene.connection()
        connection.ask(b"GET / HTTP/1.1\r\n\r\n")
        connection.data_received(b"1")
        transport.lose()
        assert [await connection.receive(), await connection.receive()] == [b"1", b""]

    scene.play(story)
