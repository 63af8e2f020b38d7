"""Names for looks: many questions are one, an answer serves for ten seconds, and a question depends on nobody who asked it."""

import asyncio
import gc
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from coatcheck.core.evidence import Exchange, Request
from coatcheck.provider.http import Gets
from coatcheck.provider.names import REMEMBERED_S, Names
from coatcheck.seams import Addresses, Connect, Seams, Socket
from provider.rawserver import RawServer, answering, reply_of
from provider.sending import TLS, MovedClock, free_port, request_to, send

FIRST, SECOND = ("192.0.2.1", 80), ("192.0.2.2", 80)
BOTH: Addresses = [(socket.AF_INET, FIRST), (socket.AF_INET, SECOND)]
OK = reply_of(b'{"id":"job-1"}', status="200 OK")
Run = Callable[[Coroutine[Any, Any, None]], None]


class Resolver(Connect):
    """Counts what it is asked, answers once `answered` is set, and remembers whom it dialled."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self.asked: list[tuple[str, int]] = []
        self.dialled: list[tuple[str, int]] = []
        self.answered = asyncio.Event()
        self.answered.set()
        self.failure: Exception | None = None
        self._found = [(socket.AF_INET, address) for address in addresses]

    async def resolve(self, host: str, port: int) -> Addresses:
        self.asked.append((host, port))
        await self.answered.wait()
        if self.failure is not None:
            raise self.failure
        return self._found

    async def dial(self, fresh: Socket, address: tuple[str, int]) -> None:
        self.dialled.append(address)
        await super().dial(fresh, address)


class Scene:
    """A resolver that is slow to answer, the names that ask it, and what the event loop had to report."""

    def __init__(self) -> None:
        self.clock = MovedClock()
        self.resolver = Resolver(FIRST, SECOND)
        self.names = Names(self.clock, self.resolver)
        self.reports: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.reports.append(context))

    async def waiting(self, count: int, host: str = "h") -> list[asyncio.Task[Addresses]]:
        """So many who wait for an answer that does not come yet."""
        self.resolver.answered.clear()
        tasks = [asyncio.create_task(self.names.resolve(host, 80)) for _ in range(count)]
        await turns()
        return tasks


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["standard", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


def test_who_asks_at_once_shares_a_question_with_who_asks_for_the_same(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        tasks = [*await scene.waiting(100), *await scene.waiting(1, host="other")]
        scene.resolver.answered.set()
        assert await asyncio.gather(*tasks) == [BOTH] * 101
        assert scene.resolver.asked == [("h", 80), ("other", 80)]
        await scene.names.resolve("h", 81)
        assert scene.resolver.asked[2:] == [("h", 81)]

    run(story())


def test_an_answer_is_used_again_for_ten_seconds_of_the_clock_that_no_stop_holds(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        for ahead, count in ((0, 1), (REMEMBERED_S - 1, 1), (REMEMBERED_S + 1, 2), (2 * REMEMBERED_S, 2)):
            scene.clock.ahead = ahead
            assert await scene.names.resolve("h", 80) == BOTH
            assert len(scene.resolver.asked) == count

    run(story())


def test_it_is_as_old_as_its_answer_and_not_as_its_question(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        (task,) = await scene.waiting(1)
        scene.clock.ahead = 3 * REMEMBERED_S
        scene.resolver.answered.set()
        await task
        await scene.names.resolve("h", 80)
        assert len(scene.resolver.asked) == 1

    run(story())


@pytest.mark.parametrize("failure", [socket.gaierror(socket.EAI_NONAME, "unknown"), UnicodeError("no name")])
def test_a_failure_is_told_to_all_who_wait_and_to_nobody_after_them(run: Run, failure: Exception) -> None:
    async def story() -> None:
        scene = Scene()
        tasks = await scene.waiting(3)
        scene.resolver.failure = failure
        scene.resolver.answered.set()
        assert await asyncio.gather(*tasks, return_exceptions=True) == [failure] * 3
        scene.resolver.failure = None
        assert await scene.names.resolve("h", 80) == BOTH
        assert len(scene.resolver.asked) == 2

    run(story())


def test_who_gives_up_does_not_end_the_question_of_others(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        first, second = await scene.waiting(2)
        first.cancel()
        await turns()
        scene.resolver.answered.set()
        assert await second == BOTH
        assert first.cancelled()
        assert len(scene.resolver.asked) == 1

    run(story())


def test_a_failure_that_nobody_waits_for_any_more_is_reported_to_nobody(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        (task,) = await scene.waiting(1)
        task.cancel()
        await turns()
        scene.resolver.failure = socket.gaierror(socket.EAI_AGAIN, "later")
        scene.resolver.answered.set()
        await turns()
        assert others() == set()
        # who was cancelled remembers where, and that holds the question
        del task
        gc.collect()
        assert scene.reports == []

    run(story())


def test_an_address_in_figures_needs_no_question_of_its_own(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        tasks = await scene.waiting(2, host="192.0.2.1")
        assert others() == set(tasks)
        scene.resolver.answered.set()
        await asyncio.gather(*tasks)

    run(story())


def test_the_address_that_was_reached_last_comes_first_under_its_name(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        scene.names.reached("h", 80, SECOND)
        assert await scene.names.resolve("h", 80) == BOTH[::-1]
        assert await scene.names.resolve("other", 80) == BOTH
        scene.names.reached("h", 80, FIRST)
        assert await scene.names.resolve("h", 80) == BOTH
        scene.names.reached("h", 80, ("192.0.2.3", 80))
        assert await scene.names.resolve("h", 80) == BOTH

    run(story())


def test_the_end_leaves_no_question_behind_and_who_waits_asks_for_himself(run: Run) -> None:
    async def story() -> None:
        scene = Scene()
        (task,) = await scene.waiting(1)
        await scene.names.close()
        assert others() == {task}
        late = await scene.waiting(1)
        assert others() == {task, *late}
        scene.resolver.answered.set()
        assert await asyncio.gather(task, *late) == [BOTH] * 2
        assert scene.reports == []

    run(story())


# -- over HTTP ----------------------------------------------------------------------------------------------------------


def looking() -> Request:
    return Request(method="GET", url="http://service.example/jobs/1")


def test_looks_that_begin_together_ask_once_and_a_post_asks_for_itself() -> None:
    async def story() -> None:
        async with RawServer(answering(OK)) as server:
            resolver = Resolver(("127.0.0.1", server.port))
            seams = replace(Seams.real(), connect=resolver)
            async with Gets(tls=TLS, seams=seams) as gets:
                found = await asyncio.gather(*(gets.get(looking(), timeout_s=10) for _ in range(50)))
                assert {exchange.status for exchange in found} == {200}
                assert len(server.peers) == 50
                assert resolver.asked == [("service.example", 80)]
                for _ in range(2):
                    await send(request_to("http://service.example"), seams=seams)
                assert len(resolver.asked) == 3

    asyncio.run(story())


def test_an_address_that_does_not_answer_is_tried_first_once_and_a_post_tries_them_as_they_come() -> None:
    async def story() -> None:
        async with RawServer(answering(OK)) as server:
            dead, alive = ("127.0.0.1", free_port()), ("127.0.0.1", server.port)
            resolver = Resolver(dead, alive)
            seams = replace(Seams.real(), connect=resolver)
            async with Gets(tls=TLS, seams=seams) as gets:
                for _ in range(2):
                    assert (await gets.get(looking(), timeout_s=10)).status == 200
                assert resolver.dialled == [dead, alive, alive]
                await send(request_to("http://service.example"), seams=seams)
                assert resolver.dialled[3:] == [dead, alive]

    asyncio.run(story())


def test_a_look_that_ends_before_its_name_is_known_leaves_nothing_in_the_loop(run: Run) -> None:
    async def story() -> None:
        resolver = Resolver(FIRST)
        resolver.answered.clear()
        async with Gets(tls=TLS, seams=replace(Seams.real(), connect=resolver)) as gets:
            exchange: Exchange = await gets.get(looking(), timeout_s=0.05)
            assert exchange.failure == "resolve_timeout"
            assert len(others()) == 1
        assert others() == set()

    run(story())
