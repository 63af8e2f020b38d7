"""Strikes: what befalls a worker when it reaches a named point the nth time. Carried to the child process as text."""

import asyncio
import enum
import json
import os
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from coatcheck.seams import Faults, Point


class Deed(enum.StrEnum):
    """What is done to the process at the point."""

    KILL = "kill"
    STOP = "stop"
    TERMINATE = "terminate"
    RAISE = "raise"


class Unforeseen(Exception):
    """Raised in the middle of a handler that could not know of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """`nth`: which time the point is reached, at `at_bytes` or more where it counts bytes.

    `operation`: only when the point is reached for this operation, by its text, as a worker names its tasks.
    """

    point: Point
    deed: Deed = Deed.KILL
    nth: int = 1
    at_bytes: int = 0
    operation: str = ""


def written(strikes: Iterable[Strike]) -> str:
    """Strikes as text for another process."""
    return json.dumps([asdict(strike) for strike in strikes])


def read(text: str) -> list[Strike]:
    """The strikes in a text that `written` made."""
    return [Strike(**{**each, "point": Point(each["point"]), "deed": Deed(each["deed"])}) for each in json.loads(text)]


class Striking(Faults):
    """Carries strikes out, and remembers which points were reached once `draining` is set."""

    def __init__(self, strikes: Sequence[Strike]) -> None:
        self.strikes = strikes
        self._counts: Counter[Strike] = Counter()
        self.draining = False
        self.while_draining: list[Point] = []

    def reached(self, point: Point, count: int = 0) -> None:
        if self.draining:
            self.while_draining.append(point)
        for strike in self.strikes:
            if strike.point is point and count >= strike.at_bytes and strike.operation in _task():
                self._counts[strike] += 1
                if self._counts[strike] == strike.nth:
                    _carry_out(strike.deed)


def _task() -> str:
    """The name of the task that reached the point; an application without a loop has none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return ""
    return task.get_name() if task else ""


def _carry_out(deed: Deed) -> None:
    match deed:
        case Deed.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Deed.STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        case Deed.TERMINATE:
            os.kill(os.getpid(), signal.SIGTERM)
        case Deed.RAISE:
            raise Unforeseen
