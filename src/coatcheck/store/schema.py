"""The schema only moves forward, one numbered migration at a time, each committed together with the row that says so.

Runners exclude each other by a transaction lock, so a runner may be killed anywhere and started anywhere: whatever was not committed
together with its row never happened. Nothing migrates by itself; a process that finds a schema that it cannot work on says so and stops.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, scalar_row

from coatcheck.errors import Refused, SchemaMismatch, Unavailable
from coatcheck.store import migrations as texts
from coatcheck.store.migrations import Migration, shipped

OLDEST_SERVER = 15

_DUPLICATES = (
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
    psycopg.errors.DuplicateFunction,
    psycopg.errors.DuplicateColumn,
)

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One row of `coatcheck.schema_migrations`."""

    number: int
    name: str
    sha256: str
    applied_at: datetime
    oldest_code: int


class State(enum.StrEnum):
    """How a migration stands in a database. CHANGED and UNKNOWN mean that another version of coatcheck was here."""

    APPLIED = "applied"
    PENDING = "pending"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One migration, known to the code or to the database; code written for version `oldest_code` and later may work on what it leaves."""

    number: int
    name: str
    state: State
    applied_at: datetime | None
    oldest_code: int


Progress = Callable[[Migration, int], None]
"""Called after each commit with the migration and the number of those still to come."""


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


def check_schema(connection: Connection, *, migrations: Sequence[Migration] | None = None) -> int:
    """The database's schema version, on which this code may work: its own, or a later one whose every migration says so. Reads only.

    Raises `SchemaMismatch` for any other.
    """
    known = shipped() if migrations is None else migrations
    found = migrate_status(connection, migrations=known)
    _refuse_strangers(found, known)
    version = version_of(found)
    if version < len(known):
        raise SchemaMismatch(
            f"expected schema version {len(known)}, got {version}",
            next="run `coatcheck migrate up` as the owner of the schema",
        )
    return version


def version_of(found: Sequence[Status]) -> int:
    """The last migration that a database remembers, 0 for none."""
    return max((each.number for each in found if each.state is not State.PENDING), default=0)


def works(each: Status, code: int) -> bool:
    """Whether code of schema version `code` may work where this migration, unknown to it, was applied."""
    return each.oldest_code <= code


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
    return Status(
        number=applied.number,
        name=applied.name,
        state=state,
        applied_at=applied.applied_at,
        oldest_code=applied.oldest_code,
    )


def _pending(migration: Migration) -> Status:
    return Status(
        number=migration.number,
        name=migration.name,
        state=State.PENDING,
        applied_at=None,
        oldest_code=migration.oldest_code,
    )


def _refuse_strangers(found: Sequence[Status], known: Sequence[Migration]) -> None:
    for each in found:
        if each.state is State.CHANGED:
            raise SchemaMismatch(
                f"expected migration {each.number} as this version of coatcheck ships it, got another text applied ({each.name})",
                next="install the version of coatcheck that migrated this database; applied migrations are never edited",
            )
        if each.state is State.UNKNOWN and not works(each, len(known)):
            raise SchemaMismatch(
                f"expected no migration after {len(known)} that excludes this version of coatcheck, got {each.number} ({each.name})",
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
        _execute(connection, b"set local statement_timeout = 0")
        # It takes the runners' lock, which ends with the transaction, so that it cannot outlive its runner behind a pooler.
        _execute(connection, texts.bookkeeping().encode())
        found = _statuses(connection, known)
        _refuse_strangers(found, known)
        missing = next((each.number for each in found if each.state is State.PENDING), None)
        if missing is None:
            return None
        migration = known[missing - 1]
        _execute(connection, texts.tables().encode())
        with _refused_duplicates(migration):
            _execute(connection, migration.sql.encode())
        if connection.info.transaction_status is not TransactionStatus.INTRANS:
            raise ValueError(f"migration {migration.number} ends its transaction; it must leave that to the runner")
        return migration, _record(connection, migration)


def _applied(connection: Connection) -> list[Applied]:
    if _scalar(connection, b"select to_regclass('coatcheck.schema_migrations')") is None:
        return []
    with psycopg.Cursor(connection, row_factory=class_row(Applied)) as cursor:
        # As JSON, because a database that an earlier version migrated has no column oldest_code.
        cursor.execute(
            b"select number, name, sha256, applied_at, coalesce((to_jsonb(each) ->> 'oldest_code')::integer, number) as oldest_code"
            b" from coatcheck.schema_migrations as each order by number"
        )
        return cursor.fetchall()


def _record(connection: Connection, migration: Migration) -> Applied:
    with psycopg.Cursor(connection, row_factory=class_row(Applied)) as cursor:
        cursor.execute(
            b"insert into coatcheck.schema_migrations (number, name, sha256, applied_at, oldest_code)"
            b" values (%s, %s, %s, clock_timestamp(), %s) returning number, name, sha256, applied_at, oldest_code",
            (migration.number, migration.name, migration.sha256, migration.oldest_code),
        )
        return cursor.fetchall()[0]


@contextmanager
def _refused_locks() -> Iterator[None]:
    try:
        yield
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise Unavailable(
            f"expected a lock within {texts.TABLE_WAIT_S} s ({texts.RUNNER_WAIT_S} s for another runner), got none: {error.diag.message_primary}",
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
