"""The pipe between a parent and one of its worker processes: orders go down it, and its end says that the parent is gone, however it ended.

The process has the reading end as its stdin. The parent alone has the other: no sibling inherits it, so a parent that is killed leaves nobody
who could keep the pipe open.
"""

import os
import stat
from contextlib import suppress
from enum import Enum
from typing import IO

_ROOM_BYTES = 64


class Order(Enum):
    """What a parent may ask for."""

    DRAIN = b"d"
    STOP = b"s"


class Lifeline:
    """The parent's end, and the other one until a process was given it: `line = Lifeline()`, `spawn(…, stdin=line.end)`, `line.begun()`."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self.end: IO[bytes] = os.fdopen(reading, "rb", buffering=0)

    def begun(self) -> None:
        """The process has its end, or there is none: the parent keeps its own only."""
        self.end.close()

    def give(self, order: Order) -> None:
        """Ask for it, unless the process is gone. It is heard also by one that has just begun and listens later."""
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self._writing, order.value)

    def close(self) -> None:
        """Let go."""
        os.close(self._writing)


def heard(descriptor: int) -> Order | None:
    """The gravest order that came, for a process whose end is readable; None: the parent is gone."""
    told = os.read(descriptor, _ROOM_BYTES)
    if not told:
        return None
    return Order.STOP if Order.STOP.value in told else Order.DRAIN


def is_line(stdin: IO[str] | None) -> bool:
    """Whether what a process was given as its stdin, None without any, can be the end of such a pipe."""
    return stdin is not None and stat.S_ISFIFO(os.fstat(stdin.fileno()).st_mode)
