"""The committer on a real server: few commits under load, bad rows alone, nothing lost with a connection, and no mark written twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId
from coatcheck.errors import CommitUnknown
from coatcheck.seams import Seams
from coatcheck.store import schema
from coatcheck.store.committer import Committer, Lane
from coatcheck.store.db import Database
from coatcheck.store.door import (
    ConcludeSave,
    DecideSave,
    DeliverSave,
    Door,
    MarkSave,
    Save,
    Saved,
    SnapshotSave,
    Status,
)
from coatcheck.store.resolution import Traces
from store.ground import Ground
from store.invariants import assert_invariants
from waiting import until_async

MARK_UNKNOWN = Saved(status=Status.UNKNOWN)


@dataclass(kw_only=True)
class Office:
    """A committer of marks, conclusions and decisions as a worker has it, on a connection of its own."""

    database: Database
    made: Committer

    async def save_all(self, saves: Sequence[Save]) -> list[Saved]:
        return list(await asyncio.gather(*(self.made.save(save) for save in saves)))


def lanes(database: Database) -> dict[type, Lane]:
    """All that the door writes, as a worker's committers have it."""
    door, traces = Door(database, "worker-1"), Traces(database, "worker-1")
    ways: dict[type, tuple[Any, Any]] = {
        MarkSave: (door.mark, traces.marks),
        ConcludeSave: (door.conclude, traces.conclusions),
        SnapshotSave: (door.snapshot, traces.snapshots),
        DeliverSave: (door.deliver, traces.deliveries),
        DecideSave: (door.decide, traces.decisions),
    }
    return {
        kind: Lane(write=write, key=lambda save: save.step.operation_id, resolve=resolve)
        for kind, (write, resolve) in ways.items()
    }


@asynccontextmanager
async def office(url: str, name: str = "office") -> AsyncIterator[Office]:
    seams = Seams.real()
    database = Database(url, seams=seams, name=name)
    made = Committer(lanes(database), seams=seams)
    try:
        yield Office(database=database, made=made)
    finally:
        await made.close()
        await database.close()


def accepting(ground: Ground, operation_ids: Sequence[OperationId]) -> list[Save]:
    """Conclusions for marked operations."""
    return [
        ground.as_save(
            ground.step(each, ev.Accepted(dispatch_id=ground.mark(each), remote_job_id=RemoteJobId(f"job-{each}")))
        )
        for each in operation_ids
    ]


def marking(ground: Ground, operation_ids: Sequence[OperationId]) -> list[Save]:
    return [
        ground.as_save(ground.step(each, ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account="genace")))
        for each in operation_ids
    ]


def test_many_concurrent_saves_take_few_commits(ground: Ground) -> None:
    operation_ids = ground.enqueue_many(200)
    marks = marking(ground, operation_ids)

    async def story() -> None:
        async with office(ground.database.url) as here:
            assert all(saved.applied for saved in await here.save_all(marks))
            assert here.made.commit_count <= 3

    asyncio.run(story())


def test_a_bad_row_among_paid_ids_fails_alone(ground: Ground) -> None:
    saves = accepting(ground, ground.enqueue_many(30))
    bad = saves[11]
    assert isinstance(bad, ConcludeSave)
    saves[11] = replace(bad, reply=b"x" * 5000)

    async def story() -> list[Any]:
        async with office(ground.database.url) as here:
            return list(await asyncio.gather(*(here.made.save(save) for save in saves), return_exceptions=True))

    answers = asyncio.run(story())
    assert [number for number, answer in enumerate(answers) if isinstance(answer, psycopg.errors.CheckViolation)] == [
        11
    ]
    assert sum(isinstance(answer, Saved) and answer.applied for answer in answers) == 29


@pytest.mark.parametrize("when", ["while it waits for a row", "when it is idle"])
@pytest.mark.parametrize("kind", ["marks", "conclusions"])
def test_a_connection_that_is_cut_loses_nothing_and_marks_nothing_twice(ground: Ground, kind: str, when: str) -> None:
    operation_ids = ground.enqueue_many(10)
    saves = marking(ground, operation_ids) if kind == "marks" else accepting(ground, operation_ids)
    holder = ground.enter_context(ground.database.connect())
    kill = "select pg_terminate_backend(pid), pid from pg_stat_activity where application_name = 'coatcheck victim'"

    def left(pids: list[int]) -> bool:
        known = ground.connection.execute("select from pg_stat_activity where pid = any(%s)", [pids])
        return known.fetchone() is not None

    async def story() -> list[Saved]:
        async with office(ground.database.url, "victim") as here:
            await here.database.fetch("select 1")
            if when == "when it is idle":
                ground.connection.execute(kill)
                return await here.save_all(saves)
            holder.execute("begin")
            holder.execute("select from coatcheck.operations for no key update")
            saving = asyncio.create_task(here.save_all(saves))
            await until_async(ground.lock_waiters)
            # it may be looked for at once, behind the same lock: only the session itself tells that it has ended
            killed = [row["pid"] for row in ground.connection.execute(kill)]
            await until_async(lambda: not left(killed))
            holder.execute("commit")
            return await saving

    answers = asyncio.run(story())
    phases = {ground.operation(each).phase for each in operation_ids}
    if kind == "marks":
        assert answers == [MARK_UNKNOWN] * 10
        assert phases == {"prepared"}
    else:
        assert all(saved.applied for saved in answers)
        assert phases == {"accepted"}
        assert {ground.operation(each).revision for each in operation_ids} == {2}


WARNING = """
create function coatcheck.warn() returns trigger language plpgsql as
  $$ begin raise warning 'committed locally, as a cancelled wait for a standby says it' using errcode = '01000'; return null; end $$;
create trigger warns after update on coatcheck.operations for each statement when (pg_trigger_depth() = 0) execute function coatcheck.warn();
"""


def test_a_commit_with_a_warning_is_unknown_so_no_mark_is_trusted(ground: Ground) -> None:
    (operation_id,) = ground.enqueue_many(1)
    (mark,) = marking(ground, [operation_id])
    ground.connection.execute(WARNING)

    async def story() -> list[Saved]:
        async with office(ground.database.url) as here:
            with pytest.raises(CommitUnknown):
                await here.database.fetch("update coatcheck.operations set updated_at = updated_at")
            assert await here.database.fetch("select 1 as one") == [{"one": 1}]
            return await here.save_all([mark])

    assert asyncio.run(story()) == [Saved(status=Status.UNKNOWN, revision=1)]
    assert ground.operation(operation_id).phase == "dispatching"


def test_a_conclusion_with_a_warning_is_found_and_not_written_again(ground: Ground) -> None:
    operation_ids = ground.enqueue_many(3)
    saves = accepting(ground, operation_ids)
    ground.connection.execute(WARNING)

    async def story() -> list[Saved]:
        async with office(ground.database.url) as here:
            saving = asyncio.create_task(here.save_all(saves))
            await until_async(
                lambda: all(
                    ground.sql("select phase = 'accepted' as is_so from coatcheck.operations")[n]["is_so"]
                    for n in range(3)
                )
            )
            ground.sql("drop trigger warns on coatcheck.operations")
            return await saving

    assert asyncio.run(story()) == [Saved(status=Status.APPLIED, revision=2)] * 3
    for operation_id in operation_ids:
        operation = ground.operation(operation_id)
        assert (operation.phase, operation.remote_job_id, operation.revision) == ("accepted", f"job-{operation_id}", 2)
        assert ground.all("incidents", operation_id) == []
        assert len(ground.all("remote_jobs", operation_id)) == 1


def test_no_transaction_of_ours_is_open_between_statements(ground: Ground) -> None:
    """S8: whatever a worker does between two statements, PostgreSQL shows its sessions idle and without a transaction."""
    saves = accepting(ground, ground.enqueue_many(3))
    ours = "select state, xact_start from pg_stat_activity where application_name like 'coatcheck %' and datname = current_database()"

    async def story() -> None:
        async with office(ground.database.url) as here:
            await here.save_all(saves)
            with pytest.raises(psycopg.errors.UndefinedTable):
                await here.database.fetch("select from nowhere")
            sessions = ground.sql(ours)
            assert len(sessions) >= 1
            assert {(row["state"], row["xact_start"]) for row in sessions} == {("idle", None)}

    asyncio.run(story())


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_the_server_is_waited_out(pytestconfig: pytest.Config, mode: str) -> None:
    with postgres.served(str(pytestconfig.getoption("--pg"))) as own:
        with psycopg.connect(own.url("postgres"), autocommit=True) as connection:
            connection.execute("create database restarted")
        with psycopg.connect(own.url("restarted")) as connection:
            schema.migrate_up(connection)
        database = postgres.Database(name="restarted", url=own.url("restarted"), server=own)
        with Ground(database) as ground, database.connect() as holder:
            saves = accepting(ground, ground.enqueue_many(20))
            holder.execute("begin")
            holder.execute("select from coatcheck.operations for no key update")

            async def story() -> list[Saved]:
                async with office(database.url) as here:
                    saving = asyncio.create_task(here.save_all(saves))
                    await until_async(ground.lock_waiters)
                    await asyncio.to_thread(own.restart, mode)
                    return await saving

            assert all(saved.applied for saved in asyncio.run(story()))
            for cut in (holder, ground.connection):
                cut.close()
        with database.connect() as connection:
            assert_invariants(connection)
            found = connection.execute("select phase, revision, count(*) from coatcheck.operations group by 1, 2")
            assert found.fetchall() == [("accepted", 2, 20)]
