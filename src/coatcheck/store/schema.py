"""The schema only moves forward, one numbered migration at a time, each committed together with the row that says so.

Runners exclude each other by a transaction lock, so a runner may be killed anywhere and started anywhere: whatever was not committed
together with its row never happened. Nothing migrates by itself; a process that finds another schema than its own says so and stops.
"""

import enum
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, scalar_row

from coatcheck.errors import Refused, SchemaMismatch, Unavailable

OLDEST_SERVER = 15
LOCK_KEY = 0x636F6174_636B6D67  # "coatckmg": one key for all databases, as advisory locks are per database
RUNNER_WAIT_S = 600
"""How long a runner waits for another one, whose index builds may take minutes."""
TABLE_WAIT_S = 5
"""How long a migration waits for a table: whatever queues behind a waiting migration is the application."""

_FILE = re.compile(r"(?P<number>\d{4})_(?P<name>[a-z0-9_]+)\.sql", re.ASCII)
_BOOKKEEPING = b"""
create table if not exists coatcheck.schema_migrations (
  number     integer     not null,
  name       text        not null,
  sha256     text        not null,
  applied_at timestamptz not null,
  constraint schema_migrations_pkey primary key (number),
  constraint schema_migrations_sha256 check (sha256 ~ '^[0-9a-f]{64}$')
)
"""

_DUPLICATES = (
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
    psycopg.errors.DuplicateFunction,
    psycopg.errors.DuplicateColumn,
)

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file of `sql/migrations`."""

    number: int
    name: str
    sql: str = field(repr=False)

    @property
    def sha256(self) -> str:
        """What the database remembers of the file's text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One row of `coatcheck.schema_migrations`."""

    number: int
    name: str
    sha256: str
    applied_at: datetime


class State(enum.StrEnum):
    """How a migration stands in a database. CHANGED and UNKNOWN mean that another version of coatcheck was here."""

    APPLIED = "applied"
    PENDING = "pending"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One migration, known to the code or to the database."""

    number: int
    name: str
    state: State
    applied_at: datetime | None


Progress = Callable[[Migration, int], None]
"""Called after each commit with the migration and the number of those still to come."""


def shipped() -> tuple[Migration, ...]:
    """The migrations of this version of coatcheck, from 1 without a gap."""
    return read_migrations(
        (each.name, each.read_text("utf-8")) for each in files("coatcheck").joinpath("sql", "migrations").iterdir()
    )


def read_migrations(texts: Iterator[tuple[str, str]]) -> tuple[Migration, ...]:
    """Migrations from pairs of file name and text. Raises ValueError when a name or the numbering is not as it must be."""
    found: list[Migration] = []
    for file_name, text in sorted(texts):
        match = _FILE.fullmatch(file_name)
        if match is None:
            raise ValueError(f"expected a migration named NNNN_words.sql, got {file_name}")
        found.append(Migration(number=int(match["number"]), name=match["name"], sql=text))
    if [each.number for each in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"expected migrations numbered 1, 2, 3, … got {[each.number for each in found]}")
    return tuple(found)


def required_version() -> int:
    """The number of the last migration that this code was written for."""
    return shipped()[-1].number


def migrate_up(
    connection: Connection, *, migrations: Sequence[Migration] | None = None, on_progress: Progress | None = None
) -> list[Applied]:
    """Apply what is missing, and return what this call applied.

        with psycopg.connect(url) as connection:
            migrate_up(connection)

    The connection must be idle and belong to the schema's owner. Raises `Refused` for a server before PostgreSQL 15 or a connection in a
    transaction, `SchemaMismatch` when an applied migration is not the one of this code, `Unavailable` for a read-only server or when a lock
    could not be had in time. Safe to repeat after any failure: every migration commits by itself.
    """
    known = shipped() if migrations is None else migrations
    _check_connection(connection)
    done: list[Applied] = []
    while (step := _next_step(connection, known)) is not None:
        migration, applied = step
        done.append(applied)
        if on_progress is not None:
            on_progress(migration, len(known) - migration.number)
    return done


def migrate_status(connection: Connection, *, migrations: Sequence[Migration] | None = None) -> list[Status]:
    """Every migration that the code or the database knows, in order. Reads only."""
    with connection.transaction():
        return _statuses(connection, shipped() if migrations is None else migrations)


def check_schema(connection: Connection, *, migrations: Sequence[Migration] | None = None) -> None:
    """Raise `SchemaMismatch` unless the database's schema is exactly the one that this code was written for. Reads only."""
    found = migrate_status(connection, migrations=migrations)
    _refuse_strangers(found)
    pending = [each for each in found if each.state is State.PENDING]
    if pending:
        raise SchemaMismatch(
            f"expected schema version {found[-1].number}, got {pending[0].number - 1}",
            next="run `coatcheck migrate up` as the owner of the schema",
        )


def _statuses(connection: Connection, known: Sequence[Migration]) -> list[Status]:
    applied = _applied(connection)
    met = {each.number for each in applied}
    expected = {each.number: each.sha256 for each in known}
    found = [_status(each, expected.get(each.number)) for each in applied]
    found += [_pending(each) for each in known if each.number not in met]
    return sorted(found, key=lambda each: each.number)


def _status(applied: Applied, expected_sha256: str | None) -> Status:
    match expected_sha256:
        case None:
            state = State.UNKNOWN
        case applied.sha256:
            state = State.APPLIED
        case _:
            state = State.CHANGED
    return Status(number=applied.number, name=applied.name, state=state, applied_at=applied.applied_at)


def _pending(migration: Migration) -> Status:
    return Status(number=migration.number, name=migration.name, state=State.PENDING, applied_at=None)


def _refuse_strangers(found: Sequence[Status]) -> None:
    for each in found:
        if each.state is State.CHANGED:
            raise SchemaMismatch(
                f"expected migration {each.number} as this version of coatcheck ships it, got another text applied ({each.name})",
                next="install the version of coatcheck that migrated this database; applied migrations are never edited",
            )
        if each.state is State.UNKNOWN:
            raise SchemaMismatch(
                f"expected no migration that this version of coatcheck does not know, got {each.number} ({each.name})",
                next="install the newer version of coatcheck that migrated this database",
            )


def _check_connection(connection: Connection) -> None:
    status = connection.info.transaction_status
    if status is not TransactionStatus.IDLE:
        raise Refused(
            f"expected an idle connection, got one whose transaction is {status.name}",
            next="give migrations a connection of their own: each one commits",
        )
    if (major := connection.info.server_version // 10_000) < OLDEST_SERVER:
        raise Refused(f"expected PostgreSQL {OLDEST_SERVER} or later, got {major}", next="upgrade the server")
    with connection.transaction():
        read_only = _scalar(connection, b"select current_setting('transaction_read_only')")
    if read_only == "on":
        raise Unavailable(
            "expected a server that takes writes, got one that is read only",
            next="connect to the primary, and see default_transaction_read_only",
        )


def _next_step(connection: Connection, known: Sequence[Migration]) -> tuple[Migration, Applied] | None:
    """Apply the first missing migration and its row in one transaction; None when nothing is missing."""
    with _refused_locks(), connection.transaction():
        # Whatever the server's default, each statement after the lock must see what another runner committed before it.
        _execute(connection, b"set transaction isolation level read committed")
        # The lock ends with the transaction, so that it cannot outlive its runner behind a pooler.
        _execute(connection, b"set local statement_timeout = 0")
        _execute(connection, f"set local lock_timeout = '{RUNNER_WAIT_S}s'".encode())
        _execute(connection, f"select pg_advisory_xact_lock({LOCK_KEY})".encode())
        _execute(connection, f"set local lock_timeout = '{TABLE_WAIT_S}s'".encode())
        _make_bookkeeping(connection)
        found = _statuses(connection, known)
        _refuse_strangers(found)
        missing = next((each.number for each in found if each.state is State.PENDING), None)
        if missing is None:
            return None
        migration = known[missing - 1]
        with _refused_duplicates(migration):
            _execute(connection, migration.sql.encode())
        if connection.info.transaction_status is not TransactionStatus.INTRANS:
            raise ValueError(f"migration {migration.number} ends its transaction; it must leave that to the runner")
        return migration, _record(connection, migration)


def _make_bookkeeping(connection: Connection) -> None:
    # Asked first, because `if not exists` wants the privilege to create even where there is nothing to create.
    if _scalar(connection, b"select to_regnamespace('coatcheck')") is None:
        _execute(connection, b"create schema coatcheck")
    if _scalar(connection, b"select to_regclass('coatcheck.schema_migrations')") is None:
        _execute(connection, _BOOKKEEPING)


def _applied(connection: Connection) -> list[Applied]:
    if _scalar(connection, b"select to_regclass('coatcheck.schema_migrations')") is None:
        return []
    with psycopg.Cursor(connection, row_factory=class_row(Applied)) as cursor:
        cursor.execute(b"select number, name, sha256, applied_at from coatcheck.schema_migrations order by number")
        return cursor.fetchall()


def _record(connection: Connection, migration: Migration) -> Applied:
    with psycopg.Cursor(connection, row_factory=class_row(Applied)) as cursor:
        cursor.execute(
            b"insert into coatcheck.schema_migrations (number, name, sha256, applied_at)"
            b" values (%s, %s, %s, clock_timestamp()) returning number, name, sha256, applied_at",
            (migration.number, migration.name, migration.sha256),
        )
        return cursor.fetchall()[0]


@contextmanager
def _refused_locks() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise Unavailable(
            f"expected a lock within {TABLE_WAIT_S} s ({RUNNER_WAIT_S} s for another runner), got none: {error.diag.message_primary}",
            next="end the long transactions that pg_stat_activity shows, then run `coatcheck migrate up` again",
        ) from error


@contextmanager
def _refused_duplicates(migration: Migration) -> Iterator[None]:
    try:
        yield
    except _DUPLICATES as error:
        raise SchemaMismatch(
            f"expected nothing of migration {migration.number} before it is applied, got what is there already: {error.diag.message_primary}",
            next="the rows of coatcheck.schema_migrations are gone: restore them from a backup, or use a database without a schema coatcheck",
        ) from error


def _execute(connection: Connection, statement: bytes) -> None:
    # Cursors of our own: the connection's factories are its owner's.
    with psycopg.Cursor(connection) as cursor:
        cursor.execute(statement, prepare=False)


def _scalar(connection: Connection, statement: bytes) -> object:
    with psycopg.Cursor(connection, row_factory=scalar_row) as cursor:
        cursor.execute(statement, prepare=False)
        return cursor.fetchone()
