"""PostgreSQL crashes and loses connections under load, and no worker is restarted for it: they go on, and both books agree in the end."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postgres
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from coatcheck.sim import ThreadedService
from coatcheck.store import schema
from failover.pair import children
from faults.child import Child
from faults.stage import LEASES_OVER_S, Stage
from figures import Report, Scale
from waiting import until

PER_OUTAGE = 50
GOES_ON_WITHIN_S, RESTS_WITHIN_S = 10.0, 60.0
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


def struck_under_load(stage: Stage, strike: Callable[[], None], outages: int) -> None:
    """Two workers, operations coming in, and `strike` befalling the database again and again as they proceed."""
    workers = [stage.worker(until_idle=False, COATCHECK_CONCURRENCY__DISPATCH="8") for _ in range(2)]
    ended = 0
    for _ in range(outages):
        stage.enqueue(BUSY, count=PER_OUTAGE)
        until_done(stage, ended + PER_OUTAGE // 2, within_s=60)
        before = done(stage)
        strike()
        stage.reconnect()
        until_done(stage, before + 1, within_s=GOES_ON_WITHIN_S)
        ended = before
    at_rest(stage)
    drained(workers)


def at_rest(stage: Stage) -> None:
    """Until nothing is left to do. A claim whose answer was lost leaves leases that nobody knows of: they end, too."""
    until(
        lambda: (
            not stage.rows("select from coatcheck.outbox where parked_at is null and visible_at < coatcheck.due_now()")
        ),
        deadline_s=RESTS_WITHIN_S,
    )
    stage.database.move_time(LEASES_OVER_S)
    until(lambda: stage.one(RESTING)["resting"] and what_was_sent_is_known(stage), deadline_s=RESTS_WITHIN_S)


def what_was_sent_is_known(stage: Stage) -> bool:
    """A worker that holds a reply saves it late, once the lease has ended, too: till then nothing is left to do, and yet it is not over."""
    record = stage.record()
    sent = [each for operation_id, each in record.operations.items() if record.posts_of(operation_id)]
    return all(each["phase"] == "accepted" for each in sent) and bool(stage.one(RESTING)["resting"])


def drained(workers: list[Child]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert worker.ended() == 0, worker.talk


def every_operation_ended_rightly(stage: Stage, outages: int) -> None:
    stage.check()
    record = stage.record()
    assert len(record.operations) == outages * PER_OUTAGE
    # no reply was lost, only connections to the database: what is in doubt was marked and never sent
    for operation_id, operation in record.operations.items():
        posts = len(record.posts_of(operation_id))
        assert (operation["phase"], operation["delivery_state"], posts) in {
            ("accepted", "delivered", 1),
            ("uncertain", "not_started", 0),
        }
    assert len(record.posts) > len(record.operations) * 0.9


def restarted(server: DevPostgres) -> None:
    server.restart("immediate")


def killed(server: DevPostgres) -> None:
    """The first of its processes alone: the others notice."""
    postmaster = server.pid
    assert postmaster is not None
    rest = children(postmaster)
    os.kill(postmaster, signal.SIGKILL)
    # the memory that they share is in use until the last one has noticed
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in rest))
    server.start()


def killed_in_one_of_its_sessions(server: DevPostgres) -> None:
    """Then the server ends all others and recovers by itself."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        found = connection.execute(
            "select pid from pg_stat_activity where application_name like 'coatcheck%'"
        ).fetchall()
        os.kill(found[0][0], signal.SIGKILL)
        until(lambda: is_gone(connection))
    until(lambda: answers(server))


def is_gone(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("select 1")
    except psycopg.OperationalError:
        return True
    return False


def answers(server: DevPostgres) -> bool:
    try:
        psycopg.connect(server.url()).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.timeout(600)
@pytest.mark.parametrize("crash", [restarted, killed, killed_in_one_of_its_sessions])
def test_a_server_that_crashes_again_and_again_costs_no_post_and_no_id(
    own_stage: Stage,
    own_server: DevPostgres,
    crash: Callable[[DevPostgres], None],
    figures: Report,
    lab_scale: Scale,
) -> None:
    outages = lab_scale(ci=2, lab=14)
    struck_under_load(own_stage, lambda: crash(own_server), outages)
    every_operation_ended_rightly(own_stage, outages)
    figures("crash restarts", outages)


@pytest.mark.timeout(600)
def test_connections_that_are_terminated_in_storms_cost_no_post_and_no_id(
    stage: Stage, figures: Report, lab_scale: Scale
) -> None:
    outages = lab_scale(ci=3, lab=10)
    terminated = 0

    def storm() -> None:
        nonlocal terminated
        for _ in range(20):
            terminated += len(
                stage.rows(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and application_name like 'coatcheck%%'"
                )
            )

    struck_under_load(stage, storm, outages)
    every_operation_ended_rightly(stage, outages)
    figures("backend kills", terminated)
