"""What happened in a run, event by event, as one hash: two runs of a seed are equal when their hashes are.

Each event carries the instant and the number of the step, so a difference anywhere shows in the next event.
"""

import hashlib
from collections import Counter

from simulation.loop import VirtualLoop
from simulation.process import current
from simulation.troubles import Trouble


class Journal:
    """One run's. With `keeps` the lines stay readable; `fired` counts faults by their class."""

    def __init__(self, loop: VirtualLoop, *, keeps: bool) -> None:
        self._loop = loop
        self._keeps = keeps
        self._hash = hashlib.blake2b(digest_size=16)
        self.count = 0
        self.lines: list[str] = []
        self.fired: Counter[Trouble] = Counter()

    def say(self, what: str) -> None:
        """An event, of whoever runs."""
        process = current()
        self.count += 1
        line = f"{self._loop.time():12.6f} {self._loop.steps:7d} {process.name if process else '-':8s} {what}"
        self._hash.update(line.encode())
        if self._keeps:
            self.lines.append(line)

    def strike(self, trouble: Trouble, what: str = "") -> None:
        """A fault took place."""
        self.fired[trouble] += 1
        self.say(f"** {trouble.value} {what}")

    @property
    def digest(self) -> str:
        """The hash of all events so far."""
        return self._hash.hexdigest()
