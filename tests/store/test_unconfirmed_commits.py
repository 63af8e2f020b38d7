"""A commit that no standby confirmed: whoever ends its wait makes it look done, and nothing is believed before a standby may have it."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

import postgres
from coatcheck.enqueue import Enqueued, enqueue_sync, prepare
from coatcheck.errors import CommitUnknown
from coatcheck.store import schema
from coatcheck.store.blocking import connected
from coatcheck.store.committing import committing
from coatcheck.store.door import Saved, Status
from faults.away import own_server
from store.ground import Ground
from store.invariants import assert_invariants
from store.test_committer_on_a_server import accepting, marking, office
from waiting import until, until_async

WAITS: LiteralString = " from pg_stat_activity where application_name = %s and wait_event = 'SyncRep'"


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
    """From now on every commit waits for the standby of this name; seen by one that does."""
    ground.connection.execute(f"alter system set synchronous_standby_names = '{name}'".encode())
    ground.sql("select pg_reload_conf()")
    if name:
        probe = threading.Thread(target=commit_until_ended, args=[ground.database.url])
        probe.start()
        until(lambda: ground.sql("select pg_terminate_backend(pid)" + WAITS, "probe"))
        probe.join(20)


def commit_until_ended(url: str) -> None:
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(url, autocommit=True, application_name="probe") as connection,
    ):
        while True:
            connection.execute("select pg_logical_emit_message(true, '', '')")


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
