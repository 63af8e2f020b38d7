"""PostgreSQL crashes and loses connections under load, and no worker is restarted for it: they go on, and both books agree in the end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import postgres
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from coatcheck.sim import ThreadedService
from coatcheck.store import schema
from faults.child import Child
from faults.stage import LEASES_OVER_S, Stage
from waiting import until

OPERATIONS = 150
OUTAGES = 3
GOES_ON_WITHIN_S = 10.0
BUSY = {"queued_s": 0.1, "processing_s": 0.2, "create": {"kind": "stall", "seconds": 0.2}}
DONE = "select count(*) from coatcheck.operations where phase not in ('prepared', 'dispatching')"
RESTING = "select count(*) = 0 as resting from coatcheck.outbox where parked_at is null"


@pytest.fixture
def own_server(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[DevPostgres]:
    """A server that nobody else's test feels the loss of."""
    version = str(pytestconfig.getoption("--pg"))
    bin_dir = postgres.DEBIAN_15 if version == "15" else None
    server = DevPostgres(
        tmp_path / "server", seams=Seams.real(), version=version, bin_dir=bin_dir, settings=postgres.SETTINGS
    )
    server.start()
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_stage(own_server: DevPostgres, sim: ThreadedService, tmp_path: Path) -> Iterator[Stage]:
    with psycopg.connect(own_server.url()) as connection:
        schema.migrate_up(connection)
    with Stage(postgres.Database(name="own", url=own_server.url(), server=own_server), sim, tmp_path) as made:
        yield made


def done(stage: Stage) -> int:
    return int(stage.one(DONE)["count"])


def until_done(stage: Stage, count: int, *, within_s: float) -> None:
    until(lambda: done(stage) >= count, deadline_s=within_s)


def struck_under_load(stage: Stage, strike: Callable[[], None]) -> None:
    """Two workers, operations coming in, and `strike` befalling the database again and again as they proceed."""
    workers = [stage.worker(until_idle=False, COATCHECK_CONCURRENCY__DISPATCH="8") for _ in range(2)]
    for number in range(1, OUTAGES + 1):
        stage.enqueue(BUSY, count=OPERATIONS // OUTAGES)
        until_done(stage, number * OPERATIONS // (OUTAGES + 2), within_s=30)
        before = done(stage)
        strike()
        stage.reconnect()
        until_done(stage, before + 1, within_s=GOES_ON_WITHIN_S)
    at_rest(stage)
    drained(workers)


def at_rest(stage: Stage) -> None:
    """Until nothing is left to do. A claim whose answer was lost leaves leases that nobody knows of: they end, too."""
    until(
        lambda: (
            not stage.rows("select from coatcheck.outbox where parked_at is null and visible_at < coatcheck.due_now()")
        )
    )
    stage.database.move_time(LEASES_OVER_S)
    until(lambda: stage.one(RESTING)["resting"])


def drained(workers: list[Child]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert worker.ended() == 0, worker.talk


def every_operation_ended_rightly(stage: Stage) -> None:
    stage.check()
    record = stage.record()
    assert len(record.operations) == OPERATIONS
    # no reply was lost, only connections to the database: what is in doubt was marked and never sent
    for operation_id, operation in record.operations.items():
        posts = len(record.posts_of(operation_id))
        assert (operation["phase"], operation["delivery_state"], posts) in {
            ("accepted", "delivered", 1),
            ("uncertain", "not_started", 0),
        }
    assert len(record.posts) > OPERATIONS * 0.9


def test_a_server_that_crashes_again_and_again_costs_no_post_and_no_id(
    own_stage: Stage, own_server: DevPostgres
) -> None:
    struck_under_load(own_stage, lambda: own_server.restart("immediate"))
    every_operation_ended_rightly(own_stage)


def test_connections_that_are_terminated_in_storms_cost_no_post_and_no_id(stage: Stage) -> None:
    def storm() -> None:
        for _ in range(20):
            stage.rows(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name like 'coatcheck%%'"
            )

    struck_under_load(stage, storm)
    every_operation_ended_rightly(stage)
