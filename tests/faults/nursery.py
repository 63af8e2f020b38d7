"""Children of the trials as forks: each runs one of the courses beside these tests, and its streams go to files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from faults.child import END_S, Child
from nursery import client
from nursery.client import Born

COURSES = {name: f"faults.{name}_main" for name in ("worker", "application", "customer", "operator", "command")}
"""What a child can be."""


class Nursery:
    """The process that has imported everything. `nursery.child("worker", [...], env=…, folder=…, name=…)`."""

    def __init__(self, running: client.Nursery) -> None:
        self._running = running
        self.lives_on = running.lives_on
        self.born_count = 0

    def child(
        self, course: str, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path, name: str
    ) -> "Forked":
        """One more child that runs `course`, with these variables and no others."""
        with (
            Path(os.devnull).open("rb") as given,
            (folder / f"{name}.out").open("wb") as out,
            (folder / f"{name}.err").open("wb") as err,
        ):
            streams = (given.fileno(), out.fileno(), err.fileno())
            born = self._running.child(COURSES[course], arguments, env=env, streams=streams)
        self.born_count += 1
        return Forked(born, folder=folder, name=name)


class Forked(Child):
    """One child of the nursery."""

    def __init__(self, born: Born, *, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._born = born
        self.pid = born.pid

    def ended(self, *, within_s: float = END_S) -> int:
        return self._born.wait(within_s)

    @property
    def running(self) -> bool:
        return self._born.poll() is None

    @property
    def stands_still(self) -> bool:
        return self._born.stands_still

    def signal(self, number: int) -> None:
        self._born.send_signal(number)


@contextmanager
def nursery_of() -> Iterator[Nursery]:
    """A nursery for as long as the block lasts; its children end with it."""
    with client.Nursery(*COURSES.values()) as running:
        yield Nursery(running)
