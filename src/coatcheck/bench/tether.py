"""A process that dies with whoever began it, however that ended: it has the reading end of a pipe as its stdin, and the beginner alone the other.

The file is also that process's program, `python -P tether.py MODULE WORD …`: it runs the module as `python -m` would, beside a thread that waits
for the end of the pipe and does nothing else. It imports nothing of ours, so that the process holds the product and no more.
"""

import os
import runpy
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

_ORDERS_BYTES = 64


def command(module: str, *words: str) -> Sequence[str]:
    """How such a process is started, as `command("coatcheck", "worker")`; what `tied` yields is its stdin."""
    return (sys.executable, "-P", __file__, module, *words)


@contextmanager
def tied() -> Iterator[IO[bytes]]:
    """The end that a process gets. Who got it dies when the block ends or this process does: no sibling inherits the other end."""
    reading, writing = os.pipe()
    try:
        with os.fdopen(reading, "rb", buffering=0) as end:
            yield end
    finally:
        os.close(writing)


def _die_with_the_pipe() -> None:
    # what it would still do is of use to nobody, and what it has in hand may never end
    while os.read(sys.stdin.fileno(), _ORDERS_BYTES):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _run(module: str, words: Sequence[str]) -> None:
    threading.Thread(target=_die_with_the_pipe, daemon=True).start()
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2:])
