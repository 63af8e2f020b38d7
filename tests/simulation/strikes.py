"""What befalls a worker at a named point of its course: each time one is reached the seed is asked.

A kill or a stop takes place in the middle of the step, exactly there. Points of looks and claims are passed by the hundred, those of one POST
a dozen times: so each point is struck more seldom the oftener it was passed.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from coatcheck.seams import Faults, Point
from simulation.journal import Journal
from simulation.loop import VirtualLoop
from simulation.process import KilledError, Process, UnforeseenError, check_alive
from simulation.troubles import Mix, Trouble

_STOPS_S: Final = (0.3, 3.0, 15.0, 22.0)
"""Some of these are longer than any lease here."""
_AT_POINTS: Final = (
    Trouble.KILL_AT_POINT,
    Trouble.STOP_AT_POINT,
    Trouble.RAISE_AT_POINT,
    Trouble.DRAIN_AT_POINT,
    Trouble.HALT_AT_POINT,
)


_NAMES: Final = {point: point.name for point in Point}


class PointsPassed:
    """How often each point was passed in a run, by any process."""

    def __init__(self) -> None:
        self.counts: Counter[Point] = Counter()
        self.strangers: list[str] = []
        """Tasks that sent a POST and are no dispatch."""


class PointFaults(Faults):
    """One process's. `drain` and `halt` are what a signal would do to it."""

    def __init__(
        self,
        process: Process,
        *,
        loop: VirtualLoop,
        mix: Mix,
        chance: random.Random,
        journal: Journal,
        passed: PointsPassed,
        drain: Callable[[], None],
        halt: Callable[[], None],
    ) -> None:
        self._process = process
        self._loop = loop
        self._mix = mix
        self._chance = chance
        self._journal = journal
        self._passed = passed
        self._drain = drain
        self._halt = halt

    def reached(self, point: Point, count: int = 0) -> None:
        check_alive()
        self._passed.counts[point] += 1
        task = self._task()
        self._journal.say(f"{_NAMES[point]} {count or ''} {task}")
        if point is Point.D7_REQUEST_BYTES and not task.startswith("dispatch "):
            self._passed.strangers.append(task)
        weight = 8.0 / (1 + self._passed.counts[point] / 20)
        trouble = self._mix.drawn(self._chance.random() / weight, _AT_POINTS)
        if trouble is not None:
            self._strike(trouble, point)

    def _strike(self, trouble: Trouble, point: Point) -> None:
        self._journal.strike(trouble, f"{point.name} {self._task()}")
        match trouble:
            case Trouble.KILL_AT_POINT:
                self._process.kill()
                raise KilledError
            case Trouble.STOP_AT_POINT:
                self._loop.pass_time(self._process, self._chance.choice(_STOPS_S))
                check_alive()
                self._journal.say(f"goes on {point.name}")
            case Trouble.RAISE_AT_POINT:
                raise UnforeseenError
            case Trouble.DRAIN_AT_POINT:
                self._drain()
            case _:
                self._halt()

    def _task(self) -> str:
        """Of whom the step is."""
        task = asyncio.current_task(self._loop)
        name = task.get_name() if task else ""
        # names that asyncio gives itself count on from run to run
        return "" if name.startswith("Task-") else name
