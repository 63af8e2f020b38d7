"""A worker that writes down what only its inside can tell: which statements it ran, and when it knew that an id was committed.

It is the worker of the product, composed by `app` as ever, with two seams that note and change nothing. What is measured from outside
(processor time, memory, rates) is measured of the real command instead.
"""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from coatcheck.app.workplace import worker_of
from coatcheck.bench import tether
from coatcheck.config import load_settings
from coatcheck.seams import Clock, Faults, Point, Seams
from coatcheck.store.db import Database, Plan, Row
from coatcheck.workers.loop import Worker

UNTIL_IDLE = "--until-idle"
_DISPATCH = "dispatch "


class Stopwatch(Faults):
    """When each operation's accepted id was committed and known to be, in seconds of the wall clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.saved_at: dict[str, float] = {}

    def reached(self, point: Point, count: int = 0) -> None:  # noqa: ARG002 - the seam's form
        """Note the operation, which the task of its dispatch is named after."""
        task = asyncio.current_task() if point is Point.D13_SAVED else None
        if task is not None and task.get_name().startswith(_DISPATCH):
            self.saved_at[task.get_name().removeprefix(_DISPATCH)] = self._clock.now().timestamp()


@cache
def names() -> Mapping[str, str]:
    """Every statement's file, as `store/mark`, by the line that says its purpose: the text that is run does not name its file."""
    rooms = [room for room in (files("coatcheck") / "sql" / "statements").iterdir() if room.is_dir()]
    return {
        file.read_text(encoding="utf-8").partition("\n")[0]: f"{room.name}/{file.name.removesuffix('.sql')}"
        for room in rooms
        for file in room.iterdir()
    }


class Tally:
    """Statements and the rows that they answered with, by the names of their files."""

    def __init__(self) -> None:
        self.statements: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()

    @asynccontextmanager
    async def opened(self, url: str, *, seams: Seams, name: str) -> AsyncIterator[Database]:
        """A connection whose statements are counted, in place of the store's own."""
        database = Counted(self, url, seams=seams, name=name)
        try:
            yield database
        finally:
            await database.close()


class Counted(Database):
    """A connection that counts its statements in a tally."""

    def __init__(self, tally: Tally, url: str, *, seams: Seams, name: str) -> None:
        super().__init__(url, seams=seams, name=name)
        self._tally = tally

    def name_of(self, text: str) -> str:
        """The statement's file, as `store/mark`."""
        return names().get(text.partition("\n")[0], "other")

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        """Run it, then count it."""
        rows = await super().fetch(text, parameters, plan=plan)
        name = self.name_of(text)
        self._tally.statements[name] += 1
        self._tally.rows[name] += len(rows)
        return rows


def command(notes: Path, *, until_idle: bool = False) -> Sequence[str]:
    """How it is started; `notes` is the file that it writes at its end."""
    return tether.command("coatcheck.bench.witness", str(notes), *([UNTIL_IDLE] if until_idle else []))


async def attended(*, until_idle: bool) -> Mapping[str, Mapping[str, float]]:
    """Work until drained or idle; what was seen."""
    settings, seams = load_settings(), Seams.real()
    stopwatch, tally = Stopwatch(seams.clock), Tally()
    seams = replace(seams, faults=stopwatch)
    async with worker_of(settings, settings.database_url or "", seams=seams, opening=tally.opened) as (worker, name):
        _obey(worker)
        sys.stderr.write(f"ready {name}\n")
        sys.stderr.flush()
        await worker.run(until_idle=until_idle)
    return {"saved_at": stopwatch.saved_at, "statements": tally.statements, "rows": tally.rows}


def _obey(worker: Worker) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, worker.drain)


if __name__ == "__main__":
    seen = asyncio.run(attended(until_idle=UNTIL_IDLE in sys.argv))
    Path(sys.argv[1]).write_text(json.dumps(seen))
