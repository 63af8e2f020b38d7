"""A commit that no standby confirmed: whoever ends its wait makes it look done, and nothing is believed before a standby may have it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import postgres
from coatcheck.enqueue import Enqueued, enqueue_sync, prepare
from coatcheck.errors import CommitUnknown
from coatcheck.seams import Faults, Point, Seams
from coatcheck.store import schema
from coatcheck.store.blocking import connected
from coatcheck.store.committing import committing
from coatcheck.store.door import Saved, Status
from faults.away import WAITS, own_server, wait_for_standby
from store.ground import Ground
from store.host import JOB, Host, accepted
from store.invariants import assert_invariants
from store.test_committer_on_a_server import accepting, marking, office
from waiting import until, until_async


@pytest.fixture
def alone(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Ground]:
    """The ground on a server that a test may tell to wait for a standby; there is none."""
    with own_server(str(pytestconfig.getoption("--pg")), tmp_path / "server") as server:
        with psycopg.connect(server.url()) as connection:
            schema.migrate_up(connection)
        with Ground(postgres.Database(name="own", url=server.url(), server=server)) as ground:
            try:
                yield ground
            finally:
                standby(ground, "")
            assert_invariants(ground.connection)


def standby(ground: Ground, name: str) -> None:
    """From now on every commit waits for the standby of this name."""
    wait_for_standby(ground.connection, ground.database.url, name)


@pytest.mark.parametrize("deed", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("kind", ["mark", "conclude"])
def test_an_end_of_the_wait_is_no_confirmation_and_neither_is_a_look_that_nobody_confirmed(
    alone: Ground, kind: str, deed: str
) -> None:
    """The server warns (01000) or breaks the connection, and the row is there for everybody: a promotion would undo it."""
    (operation_id,) = alone.enqueue_many(1)
    (save,) = (marking if kind == "mark" else accepting)(alone, [operation_id])
    end = f"select {deed}(%s)"
    revision = 1 if kind == "mark" else 2

    def waiters(*, is_look: bool) -> list[int]:
        rows = alone.sql("select pid, query like '%%has left behind%%' as is_look" + WAITS, "coatcheck office")
        return [row["pid"] for row in rows if row["is_look"] is is_look]

    async def ended(*, is_look: bool) -> None:
        """End the wait of a statement: the same session goes on, or another comes."""
        await until_async(lambda: waiters(is_look=is_look))
        (pid,) = waiters(is_look=is_look)
        alone.connection.execute(end.encode(), [pid])
        await until_async(lambda: waiters(is_look=is_look) != [pid])

    async def story() -> Saved:
        async with office(alone.database.url) as here:
            # connected, and the statements known
            await here.database.fetch("select 1")
            standby(alone, "nobody")
            saving = asyncio.create_task(here.made.save(save))
            await ended(is_look=False)
            for _ in range(2):
                await ended(is_look=True)
                assert not saving.done()
                assert alone.one("operations", operation_id, "revision") == {"revision": revision}
            await until_async(lambda: waiters(is_look=True))
            standby(alone, "")
            saved: Saved = await saving
            return saved

    status = Status.UNKNOWN if kind == "mark" else Status.APPLIED
    assert asyncio.run(story()) == Saved(status=status, revision=revision)
    assert alone.one("operations", operation_id, "revision") == {"revision": revision}


class Alone(Faults):
    """The standby goes when an end is about to be saved."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def reached(self, point: Point, count: int = 0) -> None:
        if point is Point.D12_SAVE_COMMIT_SENT:
            standby(self._ground, "nobody")


@pytest.mark.parametrize("deed", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_line_of_the_spool_stays_until_a_standby_confirmed_what_it_became(
    alone: Ground, deed: str, tmp_path: Path
) -> None:
    """A promotion would undo what everybody sees, and the line is the only other copy: to see it is not enough."""
    host = Host(alone, tmp_path)
    operation_id, end = accepted(alone)
    file = host.left(end)

    def waits() -> bool:
        return bool(alone.sql("select pid" + WAITS, "coatcheck replay"))

    async def struck(replaying: asyncio.Task[None]) -> None:
        def is_over() -> bool:
            alone.connection.execute(f"select {deed}(pid)".encode() + WAITS.encode(), ["coatcheck replay"])
            return replaying.done()

        await until_async(is_over)
        await replaying

    async def story() -> None:
        async with host.replayers("alive-1", replace(Seams.real(), faults=Alone(alone))) as started:
            replayer = started()
            # the save, and twice a look for it
            for _ in range(3):
                await struck(asyncio.create_task(replayer.replay()))
                assert alone.one("operations", operation_id, "phase", "revision") == {
                    "phase": "accepted",
                    "revision": 2,
                }
                assert host.names() == [file.name]
            replaying = asyncio.create_task(replayer.replay())
            await until_async(waits)
            assert host.names() == [file.name]
            standby(alone, "")
            await replaying

    asyncio.run(story())
    assert host.names() == []
    assert (alone.operation(operation_id).remote_job_id, alone.operation(operation_id).revision) == (JOB, 2)


@pytest.mark.parametrize("deed", ["pg_cancel_backend", "pg_terminate_backend"])
def test_an_enqueue_that_no_standby_confirmed_is_unknown_and_so_is_finding_it(alone: Ground, deed: str) -> None:
    """Whoever asks again only reads, and a commit that wrote nothing waits for nobody: it must be made to."""
    request = prepare(tenant_id="t1", key="k1", provider="genace", specification={"p": 1})
    waits = "select pid" + WAITS

    def ask(*, confirms: bool) -> Enqueued:
        with connected(alone.database.url, "asking") as connection, committing(connection, confirms=confirms):
            return enqueue_sync(connection, request)

    standby(alone, "nobody")
    with ThreadPoolExecutor(1) as pool:
        for confirms in (False, True):
            asking = pool.submit(ask, confirms=confirms)
            until(lambda: alone.sql(waits, "coatcheck asking"))
            (row,) = alone.sql(waits, "coatcheck asking")
            alone.connection.execute(f"select {deed}(%s)".encode(), [row["pid"]])
            with pytest.raises(CommitUnknown):
                asking.result(timeout=20)
        asking = pool.submit(ask, confirms=True)
        until(lambda: alone.sql(waits, "coatcheck asking"))
        standby(alone, "")
        assert asking.result(timeout=20).created is False
