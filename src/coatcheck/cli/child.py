"""One of several worker processes as its parent has it: begun with a pipe to hear orders by, undisturbed by signals until it listens."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from coatcheck.cli.lifeline import Lifeline, Order
from coatcheck.cli.signals import ORDERS
from coatcheck.seams import Seams


class Child:
    """A process under way. Raises OSError where the system has no room for another. Inside a running loop only.

    `child = Child(command, seams)`, then `child.see()` whenever some child of ours ended, and `await child.end()`.
    """

    def __init__(self, command: Sequence[str], seams: Seams) -> None:
        self._lifeline = Lifeline()
        self._over = asyncio.Event()
        self._code = 0
        try:
            with _held_back():
                self._process = seams.spawn(command, stdin=self._lifeline.end)
        except OSError:
            self._lifeline.close()
            raise
        finally:
            self._lifeline.begun()

    @property
    def pid(self) -> int:
        """Its number in the system."""
        return self._process.pid

    def give(self, order: Order) -> None:
        """Ask for it, if it lives."""
        if not self._over.is_set():
            self._lifeline.give(order)

    def kill(self) -> None:
        """End it without asking, if it lives: what it had in its hands ends in doubt."""
        if not self._over.is_set():
            self._process.kill()

    def see(self) -> None:
        """Take in that it has ended, if so."""
        code = self._process.poll()
        if code is not None and not self._over.is_set():
            self._code = code
            self._lifeline.close()
            self._over.set()

    async def end(self) -> int:
        """Wait for its end; its exit code, negative for a signal."""
        self.see()
        await self._over.wait()
        return self._code


@contextmanager
def _held_back() -> Iterator[None]:
    """For the length of a block signals wait, and a process that is begun in it has them wait until it says otherwise.

    One that came in its first moments would kill it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ORDERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
