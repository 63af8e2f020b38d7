"""Real restores and real promotions: nothing is sent from a copy until a person resumed, while looks and deliveries go on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import DispatchId
from coatcheck.devdb import DevPostgres
from coatcheck.seams import NO_FAULTS, Seams
from coatcheck.sim import ThreadedService
from coatcheck.store import pauses, schema
from coatcheck.store.db import opened
from coatcheck.store.door import Status
from faults.copies import caught_up, cluster, dumped, loaded, promote, standby_of
from faults.stage import Stage
from store.ground import ACCOUNT, Ground
from waiting import until


@pytest.fixture
def version(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--pg"))


@pytest.fixture
def primary(version: str, tmp_path: Path) -> Iterator[DevPostgres]:
    with cluster(version, tmp_path / "primary") as server:
        with psycopg.connect(server.url()) as connection:
            schema.migrate_up(connection)
        yield server


@pytest.fixture
def standby(primary: DevPostgres, version: str, tmp_path: Path) -> Iterator[DevPostgres]:
    with standby_of(primary, version, tmp_path / "standby") as server:
        yield server


def staged(server: DevPostgres, sim: ThreadedService, folder: Path) -> Stage:
    return Stage(postgres.Database(name="own", url=server.url(), server=server), sim, folder)


def dispatched(stage: Stage) -> None:
    """Send all that is prepared, and look at nothing."""

    async def work() -> None:
        async with worker_of(stage.settings(), stage.url, seams=Seams.real(), roles=[Action.DISPATCH]) as (worker, _):
            await worker.run(until_idle=True)

    asyncio.run(work())


def resumed(stage: Stage) -> None:
    async def work() -> None:
        async with opened(stage.database.url, seams=Seams.real(), name="person") as database:
            await pauses.resume(database, "genace", reason="compared with their list", actor="ada", faults=NO_FAULTS)

    asyncio.run(work())


def provider(stage: Stage) -> dict[str, Any]:
    return stage.one("select * from coatcheck.providers where name = 'genace'")


def waits(stage: Stage, operation_id: UUID) -> bool:
    lane = stage.one("select * from coatcheck.outbox where operation_id = %s and lane = 0", operation_id)
    return (lane["action"], lane["wait_reason"], lane["leased_by"]) == ("dispatch", "pause", None)


def phases(stage: Stage, *operation_ids: UUID) -> list[tuple[str, str]]:
    found = [stage.operation(each) for each in operation_ids]
    return [(row["phase"], row["delivery_state"]) for row in found]


def test_a_loaded_dump_sends_nothing_that_was_sent_after_it(
    primary: DevPostgres, sim: ThreadedService, version: str, tmp_path: Path
) -> None:
    with staged(primary, sim, tmp_path) as stage:
        (rendering,) = stage.enqueue()
        dispatched(stage)
        (lost,) = stage.enqueue()
        dump = dumped(primary.url(), version, tmp_path / "dump")
        dispatched(stage)
        assert len(sim.posts) == 2
    with cluster(version, tmp_path / "copy") as copy:
        loaded(dump, version, copy.url())
        with staged(copy, sim, tmp_path) as stage:
            assert phases(stage, lost) == [("prepared", "not_started")]
            asyncio.run(two_workers(stage))
            assert len(sim.posts) == 2
            assert phases(stage, rendering, lost) == [("accepted", "delivered"), ("prepared", "not_started")]
            assert waits(stage, lost)
            assert provider(stage)["dispatch_pause_reason"].startswith("restored: another cluster")
            resumed(stage)
            stage.work()
            assert provider(stage)["dispatch_resume_reason"] == "compared with their list"
            assert phases(stage, lost) == [("accepted", "delivered")]
            assert len(sim.posts) == 3


async def two_workers(stage: Stage) -> None:
    """Both start at once, and do what is due."""

    async def work() -> None:
        async with worker_of(stage.settings(), stage.url, seams=Seams.real()) as (worker, _):
            await worker.run(until_idle=True)

    async with asyncio.timeout(60), asyncio.TaskGroup() as both:
        both.create_task(work())
        both.create_task(work())


def test_a_dump_loaded_into_the_same_cluster_is_noticed_too(
    primary: DevPostgres, sim: ThreadedService, version: str, tmp_path: Path
) -> None:
    with staged(primary, sim, tmp_path) as stage:
        stage.enqueue()
        dump = dumped(primary.url(), version, tmp_path / "dump")
        dispatched(stage)
    with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
        connection.execute("drop database coatcheck")
        connection.execute("create database coatcheck")
    loaded(dump, version, primary.url())
    with staged(primary, sim, tmp_path) as stage:
        stage.work()
        assert provider(stage)["dispatch_pause_reason"].endswith("the tables were made anew in this cluster")
        assert len(sim.posts) == 1


def test_workers_that_run_on_through_a_promotion_send_nothing_from_it(
    primary: DevPostgres, standby: DevPostgres, sim: ThreadedService, tmp_path: Path
) -> None:
    with staged(primary, sim, tmp_path) as stage:
        stage.url = followed(primary, standby)
        workers = [stage.worker(until_idle=False) for _ in range(2)]
        for worker in workers:
            worker.says("ready")
        (rendering,) = stage.enqueue({"queued_s": 0, "processing_s": 4})
        until(lambda: phases(stage, rendering) == [("accepted", "not_started")])
        caught_up(standby, primary)
        stage.database.url = standby.url()
        primary.stop("immediate")
        promote(standby)
        stage.reconnect()
        late = stage.enqueue(count=5)
        until(lambda: provider(stage)["dispatch_paused_at"])
        until(lambda: all(waits(stage, each) for each in late))
        until(lambda: phases(stage, rendering) == [("accepted", "delivered")])
        assert provider(stage)["dispatch_pause_reason"] == "restored: promoted: expected timeline 1, got 2"
        posts_before = len(sim.posts)
        resumed(stage)
        until(lambda: phases(stage, *late) == [("accepted", "delivered")] * 5)
        assert (posts_before, len(sim.posts)) == (1, 6)
        assert all(worker.running for worker in workers)
        assert provider(stage)["dispatch_paused_at"] is None


def test_a_mark_is_refused_until_a_promotion_was_noticed_even_where_it_is_said_to_be_safe(
    primary: DevPostgres, standby: DevPostgres, sim: ThreadedService, tmp_path: Path
) -> None:
    """The control file names the new timeline only after a checkpoint, which may take minutes, so it is not asked."""
    caught_up(standby, primary)
    primary.stop("immediate")
    promote(standby)
    with staged(standby, sim, tmp_path) as stage:
        with Ground(stage.database) as ground:
            mark = ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT)
            assert ground.happen(ground.enqueue("early"), mark).status is Status.PAUSED
        (operation_id,) = stage.enqueue()
        stage.work(COATCHECK_PROMOTION_IS_SAFE="true")
        assert phases(stage, operation_id) == [("accepted", "delivered")]
        (row,) = stage.rows("select timeline, changed_at, restored_at from coatcheck.installation")
        assert (row["timeline"], row["changed_at"] is not None, row["restored_at"]) == (2, True, None)


def followed(primary: DevPostgres, standby: DevPostgres) -> str:
    """An address that leads to whichever of the two takes writes."""
    one, other = (psycopg.conninfo.conninfo_to_dict(server.url()) for server in (primary, standby))
    return psycopg.conninfo.make_conninfo(
        primary.url(),
        host=f"{one['host']},{other['host']}",
        port=f"{one['port']},{other['port']}",
        target_session_attrs="read-write",
    )
