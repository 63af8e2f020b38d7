"""A PostgreSQL of a story's own that goes away exactly when a reply was read, and comes back when the story says so."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

import psycopg

import postgres
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Point, Seams
from coatcheck.sim import ThreadedService
from coatcheck.spool.folder import FOLDER, LINES
from coatcheck.spool.record import Record, read
from coatcheck.store import schema
from faults.child import Child
from faults.stage import QUICK, Stage
from faults.strike import Deed, Strike
from waiting import until

WAITS: LiteralString = " from pg_stat_activity where application_name = %s and wait_event = 'SyncRep'"
"""Who waits for a standby, by the name of its connection."""


@contextmanager
def own_server(version: str, folder: Path) -> Iterator[DevPostgres]:
    """A server that nobody else's test feels the loss of."""
    bin_dir = postgres.DEBIAN_15 if version == "15" else None
    server = DevPostgres(folder, seams=Seams.real(), version=version, bin_dir=bin_dir, settings=postgres.SETTINGS)
    server.start()
    try:
        yield server
    finally:
        server.start()
        server.remove()


def wait_for_standby(connection: psycopg.Connection[Any], url: str, name: str) -> None:
    """From now on every commit of the server waits for the standby of this name; seen by one that does."""
    connection.execute(f"alter system set synchronous_standby_names = '{name}'".encode())
    connection.execute("select pg_reload_conf()")
    if name:
        probe = threading.Thread(target=_commit_until_ended, args=[url])
        probe.start()
        until(lambda: connection.execute("select pg_terminate_backend(pid)" + WAITS, ["probe"]).fetchall())
        probe.join(20)


def _commit_until_ended(url: str) -> None:
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(url, autocommit=True, application_name="probe") as connection,
    ):
        while True:
            connection.execute("select pg_logical_emit_message(true, '', '')")


class Away(Stage):
    """A stage whose server may be away."""

    def __init__(self, server: DevPostgres, sim: ThreadedService, folder: Path, *, name: str = "own") -> None:
        self.server = server
        self.at_the_server(f"create database {name}")
        with psycopg.connect(server.url(name)) as connection:
            schema.migrate_up(connection)
        super().__init__(postgres.Database(name=name, url=server.url(name), server=server), sim, folder)

    @property
    def spool(self) -> Path:
        return self.folder / "home" / FOLDER

    def files(self) -> list[Path]:
        """The files with lines in them."""
        return [path for path in sorted(self.spool.glob(f"*{LINES}")) if path.stat().st_size]

    def lines(self) -> list[Record]:
        return [read(line) for path in self.files() for line in path.read_bytes().splitlines()]

    def commits_at_once(self) -> None:
        """What the story itself commits waits for no standby."""
        self._connection.execute("set synchronous_commit = local")

    def leave(self) -> None:
        """Nobody of the story is connected until it reconnects."""
        self._close()

    def at_the_server(self, *statements: str) -> None:
        """Something that is said of a database, not in it."""
        with psycopg.connect(self.server.url("postgres"), autocommit=True) as admin:
            for each in statements:
                admin.execute(each.encode())

    def goes(self) -> None:
        self.server.stop("immediate")

    def comes(self) -> None:
        self.server.start()
        self.reconnect()

    @contextmanager
    def without_standby(self) -> Iterator[None]:
        """In the block every commit waits for a standby that is not there."""
        wait_for_standby(self._connection, self.database.url, "nobody")
        try:
            yield
        finally:
            wait_for_standby(self._connection, self.database.url, "")

    def replied(self, *strikes: Strike, job: object = None, go_on: bool = True, **changes: str) -> tuple[UUID, Child]:
        """An operation whose reply was read by a worker, while the database has just gone. The worker goes on."""
        (one,) = self.enqueue(job if isinstance(job, dict) else QUICK)
        worker = self.worker(Strike(point=Point.D11_PARSED, deed=Deed.STOP), *strikes, until_idle=False, **changes)
        worker.stopped()
        self.goes()
        if go_on:
            worker.go_on()
        return one, worker

    def spooled(self) -> tuple[UUID, Child]:
        """The same, and the reply lies in the spool."""
        one, worker = self.replied()
        until(self.files)
        return one, worker
