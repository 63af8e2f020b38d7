"""Connecting a socket of one's own, on either event loop: it is connected, or it says why not, and nobody goes on watching it."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import uvloop

from coatcheck.seams import Connect, wake

Run = Callable[[Coroutine[Any, Any, None]], None]
LOOPS: Sequence[Callable[[], asyncio.AbstractEventLoop]] = (asyncio.new_event_loop, uvloop.new_event_loop)


@pytest.fixture(params=LOOPS, ids=["standard", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@contextmanager
def listening(family: socket.AddressFamily = socket.AF_INET, *, backlog: int = 8) -> Iterator[tuple[str, int]]:
    with socket.socket(family) as listener:
        listener.bind(("::1" if family is socket.AF_INET6 else "127.0.0.1", 0))
        listener.listen(backlog)
        yield listener.getsockname()[:2]


@contextmanager
def fresh(family: socket.AddressFamily = socket.AF_INET) -> Iterator[socket.socket]:
    made = Connect().socket(family)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def crowded() -> Iterator[tuple[str, int]]:
    """An address at which the kernel answers nobody any more: as many as it holds are waiting to be accepted."""
    with listening(backlog=0) as address:
        waiting = [Connect().socket(socket.AF_INET) for _ in range(4)]
        try:
            for each in waiting:
                each.connect_ex(address)
            yield address
        finally:
            for each in waiting:
                each.close()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_it_is_connected_to_that_address(run: Run, family: socket.AddressFamily) -> None:
    with listening(family) as address, fresh(family) as made:
        run(Connect().dial(made, address))
        assert made.getpeername()[:2] == address


def test_a_refusal_is_raised_as_what_it_is(run: Run) -> None:
    with listening() as address:
        pass
    with fresh() as made, pytest.raises(ConnectionRefusedError):
        run(Connect().dial(made, address))


def test_who_stops_waiting_leaves_the_descriptor_to_the_next(run: Run) -> None:
    """A descriptor's number is soon another socket's: whoever still watched it would disturb that one."""

    async def dial(unheard: tuple[str, int], heard: tuple[str, int]) -> None:
        with fresh() as made:
            number = made.fileno()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await Connect().dial(made, unheard)
        with fresh() as made:
            assert made.fileno() == number
            await Connect().dial(made, heard)
            assert made.getpeername() == heard

    with crowded() as unheard, listening() as heard:
        run(dial(unheard, heard))


def test_a_wait_that_ended_is_not_ended_again(run: Run) -> None:
    """A limit that passes in the turn in which the socket is ready cancels the wait before the loop says so."""

    async def end() -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.cancel()
        wake(waiting)
        assert waiting.cancelled()

    run(end())
