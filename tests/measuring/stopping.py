"""Processes that hear nothing: whatever is to end them must be SIGKILL."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """For the length of a block; who is left after it goes on."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
