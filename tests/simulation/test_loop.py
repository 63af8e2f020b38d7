"""The ground of the simulation: time that jumps, one order, and processes that can be held and ended at any step."""

import asyncio
import contextvars
import time

import pytest

from simulation.loop import EndedError, VirtualLoop, passing
from simulation.process import PROCESS, Process


def test_a_day_of_sleep_takes_no_time() -> None:
    loop = VirtualLoop(limit_s=100_000)
    began = time.monotonic()

    async def story() -> float:
        await passing(86_400)
        return loop.time()

    assert loop.run_until_complete(story()) == 1_000 + 86_400
    assert time.monotonic() - began < 10
    loop.end([])


def test_timers_of_one_instant_run_in_the_order_in_which_they_were_set() -> None:
    loop, told = VirtualLoop(), list[int]()

    async def story() -> None:
        for number in range(20):
            loop.call_at(1_005.0, told.append, number)
        await passing(5)

    loop.run_until_complete(story())
    assert told == list(range(20))
    loop.end([])


def test_what_can_never_end_is_told_and_not_waited_for() -> None:
    loop = VirtualLoop()

    async def story() -> None:
        await asyncio.Event().wait()

    with pytest.raises(EndedError, match="deadlock"):
        loop.run_until_complete(story())
    loop.end([])


@pytest.mark.parametrize(("limits", "words"), [({"limit_s": 50}, "virtual time"), ({"limit_steps": 500}, "steps")])
def test_a_run_without_an_end_is_ended(limits: dict[str, int], words: str) -> None:
    loop = VirtualLoop(**limits)

    async def story() -> None:
        while True:
            await passing(1)

    with pytest.raises(EndedError, match=words):
        loop.run_until_complete(story())
    loop.end([])


class Told:
    """Two processes that count every second, and what they counted."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.processes: list[Process] = []
        self.counts = {"one": 0, "two": 0}

    def begin(self, process: Process) -> None:
        self.processes.append(process)
        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        self.loop.call_soon(lambda: asyncio.ensure_future(self._count(process.name)), context=context)

    async def _count(self, name: str) -> None:
        try:
            while True:
                await passing(1)
                self.counts[name] += 1
        finally:
            self.counts[name] += 1_000


def test_a_killed_process_does_nothing_more_not_even_what_stands_in_its_finally() -> None:
    loop = VirtualLoop()
    told, one = Told(loop), Process("one")

    async def story() -> None:
        told.begin(one)
        told.begin(Process("two"))
        await passing(10.5)
        one.kill()
        await passing(10)

    loop.run_until_complete(story())
    assert told.counts == {"one": 10, "two": 20}
    loop.end(told.processes)


def test_a_stopped_process_goes_on_where_it_was() -> None:
    loop = VirtualLoop()
    told, one = Told(loop), Process("one")

    async def story() -> None:
        told.begin(one)
        await passing(3.5)
        loop.pass_time(one, 100)
        assert told.counts["one"] == 3
        await passing(3)

    loop.run_until_complete(story())
    assert loop.time() == pytest.approx(1_106.5)
    assert 6 <= told.counts["one"] <= 7
    loop.end(told.processes)


def test_a_process_is_stopped_in_the_middle_of_a_step_while_the_others_go_on() -> None:
    loop = VirtualLoop()
    told, one, seen = Told(loop), Process("one"), list[int]()

    async def struck() -> None:
        await passing(2.5)
        before = told.counts["two"]
        loop.pass_time(one, 50)
        seen.append(told.counts["two"] - before)

    async def story() -> None:
        told.begin(Process("two"))
        context = contextvars.copy_context()
        context.run(PROCESS.set, one)
        await asyncio.get_running_loop().create_task(struck(), context=context)

    loop.run_until_complete(story())
    assert seen == [50]
    loop.end([*told.processes, one])


def test_a_thread_s_work_is_done_at_once_and_its_answer_comes_as_late_as_the_disk_is() -> None:
    loop = VirtualLoop()
    loop.disk = lambda _: 7.0

    async def story() -> float:
        assert await asyncio.to_thread(lambda: 5) == 5
        return loop.time()

    assert loop.run_until_complete(story()) == 1_007.0
    loop.end([])
