"""A PostgreSQL for tests: one server per run, migrated once into a template, a fresh database of it for each test.

Servers live in numbered slots of the clone's own folder. A run takes the first slot that no other run holds; what a killed run left in a
slot is put right by the next one that takes it.
"""

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams

SLOTS = Path(__file__).resolve().parent.parent / ".postgres"
DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
# Speed where nothing is proven by the disk: no test pulls the plug, and a killed server loses nothing without fsync.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    # When a mark was committed is compared with when its POST arrived.
    "track_commit_timestamp": "on",
    "max_connections": "200",
    "shared_buffers": "64MB",
}

MOVED: LiteralString = """
create or replace function coatcheck.due_now() returns timestamptz language sql stable parallel safe
    as $$ select pg_catalog.statement_timestamp() + pg_catalog.make_interval(secs => {offset}) $$;
create or replace function coatcheck.lease_now() returns timestamptz language sql volatile parallel safe
    as $$ select pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => {offset}) $$;
"""


@dataclass(kw_only=True)
class Database:
    """One test's own database. `url` is how the code under test reaches it, which may be by way of a pooler."""

    name: str
    url: str
    server: DevPostgres
    url_beside: str | None = None
    _offset_s: float = field(default=0.0)

    def connect(self) -> psycopg.Connection[TupleRow]:
        """The test's own connection in autocommit, beside any pooler; close it, or use it as a context manager."""
        return psycopg.connect(self.url_beside or self.url, autocommit=True)

    def move_time(self, seconds: float) -> None:
        """Move what this database takes for now by `seconds`, on top of earlier moves: both of its time functions, nothing else."""
        self._offset_s += seconds
        with self.connect() as connection:
            connection.execute(sql.SQL(MOVED).format(offset=sql.Literal(self._offset_s)))


class Template:
    """A migrated database that every test's database is a copy of."""

    def __init__(self, server: DevPostgres, migrated: bool, *, reached_by: Callable[[str], str] | None = None) -> None:
        self._server = server
        self._reached_by = reached_by or server.url
        self._name = f"template_{uuid.uuid4().hex[:12]}"
        self._admin = psycopg.connect(server.url("postgres"), autocommit=True)
        self._create(self._name, "template0")
        if migrated:
            from coatcheck.store import schema  # noqa: PLC0415 - only the tests of a migrated database need it

            with psycopg.connect(server.url(self._name)) as connection:
                schema.migrate_up(connection)

    @contextmanager
    def copy(self) -> Iterator[Database]:
        """A fresh database, dropped at the end whoever is still connected."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._create(name, self._name)
        try:
            yield Database(
                name=name, url=self._reached_by(name), server=self._server, url_beside=self._server.url(name)
            )
        finally:
            self._admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def close(self) -> None:
        """End the connection that makes the copies."""
        self._admin.close()

    def _create(self, name: str, template: str) -> None:
        statement = sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template))
        self._admin.execute(statement)


@contextmanager
def served(version: str) -> Iterator[DevPostgres]:
    """A running server of `version` ("18", "16", or Debian's "15") in the first free slot; its files are deleted at the end."""
    bin_dir = DEBIAN_15 if version == "15" else None
    with _slot(version) as home:
        server = DevPostgres(home, seams=Seams.real(), version=version, bin_dir=bin_dir, settings=SETTINGS)
        server.start()
        try:
            yield server
        finally:
            server.remove()


@contextmanager
def _slot(version: str) -> Iterator[Path]:
    SLOTS.mkdir(exist_ok=True)
    for number in range(100):
        descriptor = os.open(SLOTS / f"{version}-{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            yield SLOTS / f"{version}-{number}"
            return
        finally:
            os.close(descriptor)
    raise AssertionError("a hundred test runs hold a slot each")
