"""What happened in a run, event by event, as one hash: two runs of a seed are equal when their hashes are.

Each event carries the instant and the number of the step, so a difference anywhere shows in the next event.
"""

import hashlib
from collections import Counter

from simulation.loop import VirtualLoop
from simulation.process import PROCESS
from simulation.troubles import Trouble


class Journal:
    """One run's. With `keeps` the lines stay readable; `fired` counts faults by their class."""

    def __init__(self, loop: VirtualLoop, *, keeps: bool) -> None:
        self._loop = loop
        self._keeps = keeps
        self._said: list[str] = []
        self.fired: Counter[Trouble] = Counter()

    def say(self, what: str) -> None:
        """An event, of whoever runs."""
        process = PROCESS.get()
        loop = self._loop
        name = "-" if process is None else process.name
        self._said.append(f"{loop.time():12.6f} {loop.steps:7d} {name:8s} {what}")

    def strike(self, trouble: Trouble, what: str = "") -> None:
        """A fault took place."""
        self.fired[trouble] += 1
        self.say(f"** {trouble.value} {what}")

    @property
    def count(self) -> int:
        """How many events there were so far."""
        return len(self._said)

    @property
    def lines(self) -> list[str]:
        """The events, where they are kept."""
        return self._said if self._keeps else []

    @property
    def digest(self) -> str:
        """The hash of all events so far."""
        return hashlib.blake2b("\n".join(self._said).encode(), digest_size=16).hexdigest()
