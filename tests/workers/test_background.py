"""What a worker does beside its work goes on as long as the worker: an unforeseen end of it is said, and it begins again."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.seams import Faults, Point, Seams
from coatcheck.sim import simulated_service
from faults.stage import Stage
from faults.strike import Unforeseen


@pytest.fixture
def stage(database: postgres.Database, tmp_path: Path) -> Iterator[Stage]:
    with simulated_service(seed=7) as sim, Stage(database, sim, tmp_path) as made:
        yield made


class Failing(Faults):
    """Raises when `point` is reached the second time, and tells when it was reached once more."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._count = 0
        self.again = asyncio.Event()

    def reached(self, point: Point, count: int = 0) -> None:
        if point is not self._point:
            return
        self._count += 1
        if self._count == 2:
            raise Unforeseen
        if self._count > 2:
            self.again.set()


def test_background_work_that_ends_unforeseen_begins_again(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> None:
        failing = Failing(Point.B1_REPORT_SENT)
        async with (
            asyncio.timeout(60),
            worker_of(stage.settings(), stage.url, seams=Seams(faults=failing)) as (worker, _),
        ):
            working = asyncio.create_task(worker.run())
            await failing.again.wait()
            worker.drain()
            await working

    with caplog.at_level(logging.CRITICAL):
        asyncio.run(live())
    told = [each for each in caplog.records if each.getMessage() == "background work ended and begins again"]
    assert [vars(each)["error"] for each in told] == ["Unforeseen"]
