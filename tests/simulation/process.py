"""A process of the simulated world: everything that was begun under its name, which a kill ends and a stop holds at once.

Whose a callback is, its context says. What belongs to a dead process does not run again; what belongs to a stopped one waits in its order.
"""

import contextvars
import enum
from collections.abc import Callable
from typing import Protocol

PROCESS: contextvars.ContextVar["Process | None"] = contextvars.ContextVar("process", default=None)
"""The process that the running code belongs to; None for the world itself: the network, the clock, the director of the story."""


class KilledError(BaseException):
    """Ends the step in which a process was killed. It passes every handler of failures, as a kill does."""


class UnforeseenError(Exception):
    """Raised in the middle of a handler that could not know of it."""


STRIKES = (KilledError, UnforeseenError)
"""What only a story raises."""


class State(enum.Enum):
    """`GHOST`: dead, and let go of once the story is over, so that nothing of it is left; it can change nothing."""

    ALIVE = enum.auto()
    STOPPED = enum.auto()
    DEAD = enum.auto()
    GHOST = enum.auto()


_GONE = (State.DEAD, State.GHOST)


class Runnable(Protocol):
    """A callback that waits for its turn."""

    def go(self) -> None:
        """Run it."""


class Process:
    """One process. `at_end` are called when it ends without a word: what its kernel does then."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.ALIVE
        self.held: list[Runnable] = []
        self.at_end: dict[object, Callable[[], None]] = {}

    @property
    def is_gone(self) -> bool:
        """Whether nothing that it does has an effect any more."""
        return self.state in _GONE

    def kill(self) -> None:
        """End it between two of its steps, or in the middle of one that is held. Its kernel closes what it had open, in the order of opening."""
        if self.is_gone:
            return
        self.state = State.DEAD
        ends, self.at_end = list(self.at_end.values()), {}
        for end in ends:
            end()


def current() -> Process | None:
    """The process whose code runs."""
    return PROCESS.get()


def check_alive() -> None:
    """Raises KilledError for code of a process that is gone: nothing it does has an effect."""
    process = PROCESS.get()
    if process is not None and process.state in _GONE:
        raise KilledError
