"""What the kernel tells of processes: who is whose child, what each does, and what it used so far. Where there is no /proc, nothing is claimed."""

import os
from collections.abc import Sequence
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_STATE, _PARENT, _USER, _SYSTEM, _USER_OF_CHILDREN, _SYSTEM_OF_CHILDREN = 0, 1, 11, 12, 13, 14
_STOPPED, _DEAD = "T", ("Z", "X")
"""States of a process."""
_IDLE = (3, 4)
"""Of the machine's times: idle, and waiting for a disk."""
_GUEST = 8
"""From here on the machine's times repeat what is counted already."""


def is_counted() -> bool:
    """Whether this system tells."""
    return (_PROC / "self" / "stat").exists()


def cpu_s(pid: int) -> float | None:
    """Processor seconds of a process; None when it is gone or nobody tells."""
    found = _stat(pid)
    return None if found is None else (int(found[_USER]) + int(found[_SYSTEM])) / _TICKS


def family_cpu_s(pid: int) -> float | None:
    """The same with its children, those that have ended included: a server and all its backends."""
    before, living = None, 0.0
    # a child that ends between the two readings would be in neither
    while (ended := _ended_cpu_s(pid)) != before and ended is not None:
        before, living = ended, sum(cpu_s(each) or 0.0 for each in (pid, *children(pid)))
    return None if ended is None else ended + living


def _ended_cpu_s(pid: int) -> float | None:
    """Of its children that have ended."""
    found = _stat(pid)
    return None if found is None else (int(found[_USER_OF_CHILDREN]) + int(found[_SYSTEM_OF_CHILDREN])) / _TICKS


def children(pid: int) -> Sequence[int]:
    """Its children, in the order in which the system numbers them; none where nobody tells."""
    if not is_counted():
        return []
    pids = sorted(int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [each for each in pids if parent(each) == pid]


def parent(pid: int) -> int | None:
    """Whose child it is."""
    found = _stat(pid)
    return None if found is None else int(found[_PARENT])


def is_dead(pid: int) -> bool:
    """Whether it has ended, also if nobody took note of that yet; true where nobody tells."""
    found = _stat(pid)
    return found is None or found[_STATE] in _DEAD


def is_still(pid: int) -> bool:
    """Whether it is stopped, or has ended; true where nobody tells."""
    found = _stat(pid)
    return found is None or found[_STATE] in (_STOPPED, *_DEAD)


def name(pid: int) -> str | None:
    """What the kernel calls it."""
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return None


def resident_bytes(pid: int) -> int | None:
    """Memory that a process really has; None when it is gone or nobody tells."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine_cpu_s() -> float | None:
    """Processor seconds of everybody on this machine; None where nobody tells."""
    try:
        words = (_PROC / "stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return None
    return sum(int(word) for place, word in enumerate(words[:_GUEST]) if place not in _IDLE) / _TICKS


def machine_memory_bytes() -> int:
    """How much memory the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _stat(pid: int) -> list[str] | None:
    """The fields behind the name, which may itself hold blanks and brackets."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
