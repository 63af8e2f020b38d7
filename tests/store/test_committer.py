"""The committer: large batches under load, bad rows alone, nothing lost in an outage, and no mark written twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId
from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Seams
from coatcheck.store import schema
from coatcheck.store.committer import BATCH, Committer, Lane
from coatcheck.store.db import Database, Trouble, trouble
from coatcheck.store.door import ConcludeSave, DecideSave, Door, MarkSave, Save, Saved, Status
from store.ground import Ground
from store.invariants import assert_invariants
from waiting import until_async

MARK_UNKNOWN = Saved(status=Status.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Item:
    """Something to write: its key and what becomes of it."""

    key: int
    text: str = ""


@dataclass
class Writer:
    """Writes items into a list. `held` keeps a batch from ending; `fails` raises what the trial wants."""

    written: list[list[Item]] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    fails: Callable[[Sequence[Item]], None] = lambda _batch: None

    async def write(self, batch: Sequence[Item]) -> list[str]:
        await self.held.wait()
        self.fails(batch)
        self.written.append(list(batch))
        return [f"{item.key}{item.text}" for item in batch]


@asynccontextmanager
async def committer(writer: Writer, *, on_unknown: Callable[[Any], Any] | None = None) -> AsyncIterator[Committer]:
    async def no_pause(seconds: float) -> None:
        await asyncio.sleep(0)

    seams = replace(Seams.real(), sleep=no_pause)
    made = Committer({Item: Lane(write=writer.write, key=lambda item: item.key, on_unknown=on_unknown)}, seams=seams)
    try:
        yield made
    finally:
        writer.held.set()
        writer.fails = lambda _batch: None
        await made.close()


def trial(story: Callable[[Writer, Committer], Awaitable[None]], **how: Any) -> Writer:
    """Play a story with a writer that does not wait."""

    async def play() -> Writer:
        writer = Writer()
        async with committer(writer, **how) as made:
            await story(writer, made)
        return writer

    return asyncio.run(play())


async def enqueued(made: Committer, items: Sequence[Item]) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(made.save(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


def test_what_waits_while_a_batch_commits_is_the_next_batch() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        first = await enqueued(made, [Item(0)])
        await asyncio.sleep(0)
        rest = await enqueued(made, [Item(key) for key in range(1, 1 + BATCH + 10)])
        writer.held.set()
        assert await asyncio.gather(*first, *rest) == [str(key) for key in range(BATCH + 11)]
        assert (made.commit_count, made.item_count) == (3, BATCH + 11)

    assert [len(batch) for batch in trial(story).written] == [1, BATCH, 10]


def test_a_key_is_once_in_a_batch_and_its_items_keep_their_order() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        tasks = await enqueued(made, [Item(1, "a"), Item(2, "a"), Item(1, "b"), Item(1, "c"), Item(2, "b")])
        writer.held.set()
        assert await asyncio.gather(*tasks) == ["1a", "2a", "1b", "1c", "2b"]

    writer = trial(story)
    assert all(len({item.key for item in batch}) == len(batch) for batch in writer.written)
    assert [item.text for batch in writer.written for item in batch if item.key == 1] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "surprise",
    [
        psycopg.errors.CheckViolation("23514"),
        psycopg.errors.InvalidTextRepresentation("22P02"),
        psycopg.DataError("of the driver's own, without a state"),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        KeyError("a defect of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_bad_row_fails_alone_and_the_committer_lives_on(surprise: Exception) -> None:
    def fails(batch: Sequence[Item]) -> None:
        if any(item.text == "bad" for item in batch):
            raise surprise

    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = fails
        tasks = await enqueued(made, [Item(key, "bad" if key in (7, 30) else "") for key in range(40)])
        writer.held.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [key for key, answer in enumerate(answers) if answer is surprise] == [7, 30]
        assert [answer for answer in answers if answer is not surprise] == [
            str(key) for key in range(40) if key not in (7, 30)
        ]
        assert await made.save(Item(99)) == "99"

    trial(story)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.SerializationFailure("40001"),
        psycopg.errors.DeadlockDetected("40P01"),
        psycopg.errors.LockNotAvailable("55P03"),
        psycopg.errors.AdminShutdown("57P01"),
        psycopg.errors.DiskFull("53100"),
        psycopg.OperationalError("the connection is lost"),
        Unavailable("away", next="wait"),
        CommitUnknown("broke", next="look"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_may_pass_is_tried_again_with_the_same_batch(error: Exception) -> None:
    async def story(writer: Writer, made: Committer) -> None:
        failures = iter(range(3))

        def fails(_batch: Sequence[Item]) -> None:
            if next(failures, None) is not None:
                raise error

        writer.fails = fails
        tasks = await enqueued(made, [Item(key) for key in range(5)])
        writer.held.set()
        assert await asyncio.gather(*tasks) == [str(key) for key in range(5)]

    assert [len(batch) for batch in trial(story).written] == [5]


def test_what_must_not_be_repeated_is_answered_as_unknown() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        def fails(_batch: Sequence[Item]) -> None:
            raise CommitUnknown("broke", next="look")

        writer.fails = fails
        writer.held.set()
        tasks = await enqueued(made, [Item(key) for key in range(3)])
        assert await asyncio.gather(*tasks) == ["unknown"] * 3

    assert trial(story, on_unknown=lambda _item: "unknown").written == []


def test_the_item_of_a_cancelled_caller_is_written_all_the_same() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        (task,) = await enqueued(made, [Item(1)])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        writer.held.set()
        assert await made.save(Item(2)) == "2"

    assert [item.key for batch in trial(story).written for item in batch] == [1, 2]


def test_closing_writes_what_waits_and_refuses_what_comes_later() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        tasks = await enqueued(made, [Item(key) for key in range(10)])
        writer.held.set()
        await made.close()
        assert await asyncio.gather(*tasks) == [str(key) for key in range(10)]
        with pytest.raises(Unavailable):
            await made.save(Item(11))

    assert sum(len(batch) for batch in trial(story).written) == 10


def test_whoever_waits_when_the_loop_ends_hears_of_it() -> None:
    async def story() -> list[Any]:
        writer = Writer()
        made = Committer({Item: Lane(write=writer.write, key=lambda item: item.key)}, seams=Seams.real())
        tasks = await enqueued(made, [Item(key) for key in range(3)])
        await asyncio.sleep(0)
        (running,) = [task for task in asyncio.all_tasks() if task.get_name() == "committer"]
        running.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(story())] == [Unavailable] * 3


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        *(("22001", Trouble.BAD_ROW), ("23505", Trouble.BAD_ROW), ("40001", Trouble.AGAIN), ("40P01", Trouble.AGAIN)),
        *(
            ("55P03", Trouble.LOCKED),
            ("08006", Trouble.UNKNOWN),
            ("57P01", Trouble.UNKNOWN),
            ("57014", Trouble.UNKNOWN),
        ),
        *(("53300", Trouble.UNKNOWN), ("25006", Trouble.UNKNOWN), ("42601", Trouble.DEFECT), ("0A000", Trouble.DEFECT)),
    ],
)
def test_trouble_is_read_from_the_state_of_the_error(state: str, expected: Trouble) -> None:
    assert trouble(psycopg.errors.lookup(state)("text is not read")) is expected


# -- on a real server --------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Office:
    """A committer of marks, conclusions and decisions as a worker has it, on a connection of its own."""

    database: Database
    made: Committer

    async def save_all(self, saves: Sequence[Save]) -> list[Saved]:
        return list(await asyncio.gather(*(self.made.save(save) for save in saves)))


@asynccontextmanager
async def office(url: str, name: str = "office") -> AsyncIterator[Office]:
    seams = Seams.real()
    database = Database(url, seams=seams, name=name)
    door = Door(database, "worker-1")
    made = Committer(
        {
            MarkSave: Lane(write=door.mark, key=lambda save: save.step.operation_id, on_unknown=lambda _: MARK_UNKNOWN),
            ConcludeSave: Lane(write=door.conclude, key=lambda save: save.step.operation_id),
            DecideSave: Lane(write=door.decide, key=lambda save: save.step.operation_id),
        },
        seams=seams,
    )
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
    kill = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'coatcheck victim'"

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
            ground.connection.execute(kill)
            await until_async(lambda: not ground.lock_waiters() or kind == "conclusions")
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

    assert asyncio.run(story()) == [MARK_UNKNOWN]
    assert ground.operation(operation_id).phase == "dispatching"


def test_a_conclusion_with_a_warning_is_written_until_it_is_known_once_in_effect(ground: Ground) -> None:
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

    assert {saved.status for saved in asyncio.run(story())} == {Status.EVIDENCE}
    for operation_id in operation_ids:
        operation = ground.operation(operation_id)
        assert (operation.phase, operation.remote_job_id) == ("accepted", f"job-{operation_id}")
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
