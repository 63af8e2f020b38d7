"""What the whole life of an operation costs: `python -m bench.lifecycle --operations 1000`. One worker, everything else in other processes."""

import argparse
import asyncio
import cProfile
import pstats
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar
from unittest import mock

from bench.stage import Stage, staged
from coatcheck.app.workplace import worker_of
from coatcheck.seams import Faults, Point, Seams
from coatcheck.store import db
from coatcheck.store.db import Database, Row

HOTTEST = 25


class Stopwatch(Faults):
    """From the reply's last byte, read and parsed, to the id being committed and known to be."""

    def __init__(self, seams: Seams) -> None:
        self._seams = seams
        self._began: dict[object, float] = {}
        self.took_ms: list[float] = []

    def reached(self, point: Point, count: int = 0) -> None:  # noqa: ARG002 - the seam's form
        """Note the two points, per task: each operation's dispatch is one."""
        if point is Point.D11_PARSED:
            self._began[asyncio.current_task()] = self._seams.clock.boottime()
        elif point is Point.D13_SAVED:
            began = self._began.pop(asyncio.current_task(), None)
            if began is not None:
                self.took_ms.append((self._seams.clock.boottime() - began) * 1000)


class Counted(Database):
    """Counts statements by their purpose, the first line of each."""

    statements: ClassVar[Counter[str]] = Counter()

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, prepare: bool = True
    ) -> Sequence[Row]:
        """Run it, and count it."""
        self.statements[text.partition("\n")[0].removeprefix("-- purpose: ")] += 1
        return await super().fetch(text, parameters, prepare=prepare)


async def drained(stage: Stage, seams: Seams) -> float:
    """Work until nothing is left; the seconds that took, start of the worker included."""
    began = seams.clock.boottime()
    async with worker_of(stage.settings, stage.url, seams=seams) as (worker, _):
        await worker.run(until_idle=True)
    return seams.clock.boottime() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument(
        "--profile", action="store_true", help="print the hottest functions, too; slows everything down"
    )
    asked = parser.parse_args()
    stopwatch = Stopwatch(Seams.real())
    seams = replace(Seams.real(), faults=stopwatch)
    profile = cProfile.Profile()
    with staged(seams) as stage, ExitStack() as stack:
        stack.enter_context(mock.patch.object(db, "Database", Counted))
        stage.enqueue(asked.operations)
        before = stage.transactions(seams)
        if asked.profile:
            stack.enter_context(profile)
        took_s = asyncio.run(drained(stage, seams))
        stack.close()
        report(asked.operations, took_s, stage.transactions(seams) - before, stopwatch.took_ms)
    if asked.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(HOTTEST)


def report(operations: int, took_s: float, transactions: int, took_ms: list[float]) -> None:
    """Print one figure a line."""
    quantiles = statistics.quantiles(took_ms, n=100)
    lines = {
        "operations": f"{operations}",
        "seconds": f"{took_s:.2f}",
        "operations per second": f"{operations / took_s:.0f}",
        "commits per operation, reads included": f"{transactions / operations:.3f}",
        "reply's last byte to committed id, ms, p50 / p99": f"{quantiles[49]:.1f} / {quantiles[98]:.1f}",
    }
    for name, count in Counted.statements.most_common():
        lines[f"statements per operation: {name}"] = f"{count / operations:.3f}"
    sys.stdout.writelines(f"{name:<50} {figure}\n" for name, figure in lines.items())


if __name__ == "__main__":
    main()
