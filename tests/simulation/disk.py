"""The disk that the processes of a run share: a real folder, whose descriptors end with their process, and which may refuse or be slow.

Nothing is flushed: a kill takes a process and not the machine, so what was written is there.
"""

import errno
import os
import random
from collections.abc import Callable
from typing import Any

from simulation.journal import Journal
from simulation.process import check_alive, current
from simulation.troubles import Mix, Trouble

_KEPT = ("Spool.append", "Spool.others", "FileSink.", "FileUpload.", "Held.")
"""What of the work on threads is work for a disk that may refuse it."""


class Disk:
    """What the loop asks before work of a thread is done."""

    def __init__(self, mix: Mix, chance: random.Random, journal: Journal) -> None:
        self._mix = mix
        self._chance = chance
        self._journal = journal

    def __call__(self, work: Callable[..., object]) -> float:
        check_alive()
        name = _named(work)
        if not name.startswith(_KEPT):
            return 0.0
        self._journal.say(f"disk {name}")
        if self._chance.random() < self._mix.rate(Trouble.DISK_FULL):
            self._journal.strike(Trouble.DISK_FULL, name)
            raise OSError(errno.ENOSPC, "no space left")
        if self._chance.random() < self._mix.rate(Trouble.DISK_SLOW):
            self._journal.strike(Trouble.DISK_SLOW, name)
            return self._chance.uniform(0.1, 8.0)
        return self._chance.uniform(0.0001, 0.003)


def _named(work: Callable[..., object]) -> str:
    """`to_thread` hands over `Context.run` with the work behind it."""
    inner = getattr(work, "args", None)
    named = inner[0] if inner else work
    return str(getattr(named, "__qualname__", type(named).__name__))


class ProcessOs:
    """Stands in place of `os` where files are written: a descriptor is its process's, and code of a dead one writes nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        check_alive()
        descriptor = os.open(path, flags, mode, dir_fd=dir_fd)
        process = current()
        # one that is only read from is handed on to a file object, which closes it
        if process is not None and not flags & os.O_NONBLOCK:
            process.at_end["descriptor", descriptor] = lambda: os.close(descriptor)
        return descriptor

    def close(self, descriptor: int) -> None:
        check_alive()
        process = current()
        if process is not None:
            process.at_end.pop(("descriptor", descriptor), None)
        os.close(descriptor)

    def write(self, descriptor: int, data: Any) -> int:
        check_alive()
        return os.write(descriptor, data)

    def ftruncate(self, descriptor: int, length: int) -> None:
        check_alive()
        os.ftruncate(descriptor, length)

    def fsync(self, descriptor: int) -> None:
        check_alive()

    def link(self, *names: Any, **options: Any) -> None:
        check_alive()
        os.link(*names, **options)

    def unlink(self, *names: Any, **options: Any) -> None:
        check_alive()
        os.unlink(*names, **options)
