"""What a worker may ask of the database, counted by the database: one transaction an operation at most, and next to nothing when idle."""

import asyncio
from dataclasses import replace
from pathlib import Path

import postgres
from bounds.scene import Spent, Watch, drain, enqueue, settings_for
from coatcheck.app.workplace import worker_of
from coatcheck.config import Settings
from coatcheck.seams import Seams
from coatcheck.sim import simulated_service
from coatcheck.workers.report import EVERY_S

OPERATIONS = 1_000
IDLE_STATEMENTS_PER_S = 3.0

ENDS = "select delivery_state, count(*) from coatcheck.operations group by delivery_state"


def cost(watch: Watch, before: Spent) -> Spent:
    after = watch.spent()
    return Spent(transactions=after.transactions - before.transactions, writes=after.writes - before.writes)


def test_draining_a_thousand_operations_takes_at_most_one_transaction_each(
    database: postgres.Database, seams: Seams, tmp_path: Path
) -> None:
    """From prepared to delivered, and reads count as well: nothing runs but autocommitted statements, each its own transaction."""
    enqueue(database, OPERATIONS)
    with Watch(database) as watch, simulated_service(seed=1) as sim:
        before = watch.spent()
        drain(settings_for(sim.base_url, tmp_path), database, seams)
        spent = cost(watch, before)
        posts = len(sim.posts)
    with database.connect() as connection:
        assert connection.execute(ENDS).fetchall() == [("delivered", OPERATIONS)]
    assert posts == OPERATIONS
    assert 0 < spent.writes <= spent.transactions <= OPERATIONS


class SleepsNoted:
    """Really sleeps, and tells when the worker has gone to sleep between two reports for the `count`th time."""

    def __init__(self, seams: Seams, count: int) -> None:
        self._really = seams.sleep
        self._left = count
        self.come = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self._left -= seconds == EVERY_S
        if self._left == 0:
            self.come.set()
        await self._really(seconds)


async def idle(settings: Settings, database: postgres.Database, seams: Seams, reports: int) -> None:
    """Run a worker that has nothing to do until it has reported so many times."""
    sleeps = SleepsNoted(seams, reports)
    async with worker_of(settings, database.url, seams=replace(seams, sleep=sleeps)) as (worker, _):
        running = asyncio.create_task(worker.run())
        await sleeps.come.wait()
        worker.drain()
        await running


def lived(database: postgres.Database) -> float:
    with database.connect() as connection:
        [(seconds,)] = connection.execute(
            "select extract(epoch from stopped_at - started_at)::float8 from coatcheck.workers order by started_at desc limit 1"
        ).fetchall()
    return float(seconds)


def test_an_idle_worker_sends_at_most_three_statements_a_second(
    database: postgres.Database, seams: Seams, tmp_path: Path
) -> None:
    """What its start and its end cost is known from a worker that ended at once."""
    settings = settings_for("http://127.0.0.1:9", tmp_path)
    with Watch(database) as watch:
        spent, seconds = [], []
        for reports in (1, 2):
            before = watch.spent()
            asyncio.run(idle(settings, database, seams, reports))
            spent.append(cost(watch, before).transactions)
            seconds.append(lived(database))
    statements, idle_s = spent[1] - spent[0], seconds[1] - seconds[0]
    assert idle_s >= EVERY_S / 2
    assert 0 < statements <= IDLE_STATEMENTS_PER_S * idle_s
