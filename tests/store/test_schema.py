"""Migrations on real servers: every one at most once, whoever runs them, however they end."""

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from threading import Barrier

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

import postgres
from coatcheck.errors import Refused, SchemaMismatch, Unavailable
from coatcheck.store import migrations, schema
from coatcheck.store.migrations import Migration, read_migrations, required_version, shipped
from coatcheck.store.schema import State
from waiting import until

MIGRATIONS = read_migrations(
    iter(
        [
            ("0001_first.sql", "create table coatcheck.first (n integer); insert into coatcheck.first values (1);"),
            # The test holds lock 1, so that a runner can be met in the middle of this one.
            (
                "0002_second.sql",
                "create table coatcheck.second (n integer); select pg_advisory_xact_lock_shared(1); insert into coatcheck.second values (2);",
            ),
            ("0003_third.sql", "create table coatcheck.third (n integer); insert into coatcheck.third values (3);"),
        ]
    )
)
RUNNER = """
import json, sys, psycopg
from coatcheck.store import schema
from coatcheck.store.migrations import Migration
migrations = [Migration(**each) for each in json.loads(sys.argv[2])]
with psycopg.connect(sys.argv[1]) as connection:
    schema.migrate_up(connection, migrations=migrations)
"""


def states(database: postgres.Database) -> list[str]:
    with database.connect() as connection:
        return [each.state.value for each in schema.migrate_status(connection, migrations=MIGRATIONS)]


def wait_for_waiters(database: postgres.Database, count: int) -> None:
    """Until `count` sessions of this database wait for an advisory lock."""
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
    with database.connect() as connection:
        until(lambda: len(connection.execute(waiting).fetchall()) == count)


def test_the_shipped_migrations_lead_from_nothing_to_the_required_version(fresh: postgres.Database) -> None:
    with psycopg.connect(fresh.url) as connection:
        with pytest.raises(SchemaMismatch, match=f"expected schema version {required_version()}, got 0"):
            schema.check_schema(connection)
        seen: list[tuple[int, int]] = []
        applied = schema.migrate_up(connection, on_progress=lambda each, left: seen.append((each.number, left)))
        assert [each.number for each in applied] == list(range(1, required_version() + 1))
        assert seen == [(each.number, required_version() - each.number) for each in applied]
        assert schema.migrate_up(connection) == []
        schema.check_schema(connection)
        assert {each.state for each in schema.migrate_status(connection)} == {State.APPLIED}
        assert connection.info.transaction_status.name == "IDLE"


def test_a_schema_made_by_somebody_else_beforehand_is_used(fresh: postgres.Database) -> None:
    with fresh.connect() as connection:
        connection.execute("create schema coatcheck")
        schema.migrate_up(connection)
        schema.check_schema(connection)


def test_the_owner_of_the_schema_needs_no_right_to_create_schemas(fresh: postgres.Database) -> None:
    role = f"owner_{fresh.name}"
    with fresh.connect() as connection:
        connection.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
        try:
            connection.execute(sql.SQL("create schema coatcheck authorization {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
            schema.migrate_up(connection, migrations=MIGRATIONS)
            assert states(fresh) == ["applied"] * 3
        finally:
            connection.execute("reset role")
            connection.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_a_row_tells_what_was_applied(fresh: postgres.Database) -> None:
    with psycopg.connect(
        fresh.url, row_factory=dict_row
    ) as connection:  # the owner's row factory is no concern of ours
        applied = schema.migrate_up(connection, migrations=MIGRATIONS)
        rows = connection.execute("select * from coatcheck.schema_migrations order by number").fetchall()
    assert [(row["number"], row["name"], row["sha256"]) for row in rows] == [
        (each.number, each.name, hashlib.sha256(each.sql.encode()).hexdigest()) for each in MIGRATIONS
    ]
    assert [row["applied_at"] for row in rows] == [each.applied_at for each in applied]


def test_two_runners_at_once_apply_each_migration_once(fresh: postgres.Database) -> None:
    starting = Barrier(2)

    def run(_: int) -> list[int]:
        # The stricter default must not make a runner blind to what the other one committed.
        with psycopg.connect(fresh.url, options="-c default_transaction_isolation=serializable") as connection:
            starting.wait(timeout=30)
            return [each.number for each in schema.migrate_up(connection, migrations=MIGRATIONS)]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(run, range(2))
    assert sorted(one + other) == [1, 2, 3]
    assert states(fresh) == ["applied"] * 3


def test_a_runner_waits_for_the_one_that_is_at_work(fresh: postgres.Database) -> None:
    def run(_: int) -> list[int]:
        with psycopg.connect(fresh.url) as connection:
            return [each.number for each in schema.migrate_up(connection, migrations=MIGRATIONS)]

    with ThreadPoolExecutor(2) as pool, fresh.connect() as gate:
        gate.execute("select pg_advisory_lock(1)")
        runs = [pool.submit(run, number) for number in range(2)]
        wait_for_waiters(fresh, 2)  # one at the gate inside the second migration, the other behind it
        assert states(fresh) == ["applied", "pending", "pending"]
        gate.execute("select pg_advisory_unlock(1)")
        assert sorted(number for each in runs for number in each.result(timeout=30)) == [1, 2, 3]


def test_a_runner_killed_in_the_middle_leaves_whole_migrations_only(fresh: postgres.Database) -> None:
    with fresh.connect() as gate:
        gate.execute("select pg_advisory_lock(1)")
        child = subprocess.Popen(
            [sys.executable, "-c", RUNNER, fresh.url, json.dumps([asdict(each) for each in MIGRATIONS])]
        )
        try:
            wait_for_waiters(fresh, 1)
        finally:
            child.kill()
            child.wait(timeout=30)
        assert states(fresh) == ["applied", "pending", "pending"]
        gate.execute("select pg_advisory_unlock(1)")
    with psycopg.connect(fresh.url) as connection:
        applied = schema.migrate_up(connection, migrations=MIGRATIONS)
        assert [each.number for each in applied] == [2, 3]
        assert connection.execute("select n from coatcheck.second").fetchall() == [(2,)]


def test_a_migration_that_fails_leaves_the_earlier_ones(fresh: postgres.Database) -> None:
    broken = (
        *MIGRATIONS[:2],
        Migration(number=3, name="third", sql="create table coatcheck.third (n integer); select 1/0;"),
    )
    with psycopg.connect(fresh.url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            schema.migrate_up(connection, migrations=broken)
        assert states(fresh) == ["applied", "applied", "pending"]
        assert [each.number for each in schema.migrate_up(connection, migrations=MIGRATIONS)] == [3]


def test_a_migration_may_not_end_the_runners_transaction(fresh: postgres.Database) -> None:
    hasty = (Migration(number=1, name="hasty", sql="create table coatcheck.hasty (n integer); commit;"),)
    with psycopg.connect(fresh.url) as connection, pytest.raises(ValueError, match="ends its transaction"):
        schema.migrate_up(connection, migrations=hasty)


def test_an_applied_migration_that_changed_is_an_error_for_every_command(fresh: postgres.Database) -> None:
    edited = (MIGRATIONS[0], Migration(number=2, name="second", sql="select 2;"), MIGRATIONS[2])
    with psycopg.connect(fresh.url) as connection:
        schema.migrate_up(connection, migrations=MIGRATIONS[:2])
        assert [each.state for each in schema.migrate_status(connection, migrations=edited)] == [
            State.APPLIED,
            State.CHANGED,
            State.PENDING,
        ]
        with pytest.raises(SchemaMismatch, match="migration 2 as this version"):
            schema.migrate_up(connection, migrations=edited)
        with pytest.raises(SchemaMismatch, match="migration 2 as this version"):
            schema.check_schema(connection, migrations=edited)
    assert states(fresh) == ["applied", "applied", "pending"]


def test_a_schema_from_a_newer_version_is_refused(fresh: postgres.Database) -> None:
    with psycopg.connect(fresh.url) as connection:
        schema.migrate_up(connection, migrations=MIGRATIONS)
        with pytest.raises(SchemaMismatch, match=r"got 3 \(third\)") as refused:
            schema.check_schema(connection, migrations=MIGRATIONS[:2])
        assert "newer version" in refused.value.next
        with pytest.raises(SchemaMismatch):
            schema.migrate_up(connection, migrations=MIGRATIONS[:2])


def later(number: int, oldest_code: int) -> Migration:
    """A migration of a version to come, for which code of `oldest_code` and later may work on."""
    header = f"-- What comes later.\n-- oldest code: {oldest_code:04}, because it only adds.\n"
    return Migration(number=number, name=f"later{number}", sql=f"{header}select {number};")


@pytest.mark.parametrize(
    ("steps", "runs"),
    [
        ([3], True),  # it says so
        ([4], False),  # it is for its own code
        ([3, 1], True),  # each of several says so
        ([3, 4], False),  # the second drops what code of version 3 still reads
        ([4, 3], False),  # one is enough
    ],
)
def test_code_runs_on_a_newer_schema_only_where_every_newer_migration_allows_it(
    fresh: postgres.Database, steps: list[int], runs: bool
) -> None:
    newer = (*MIGRATIONS, *(later(number, oldest_code) for number, oldest_code in enumerate(steps, start=4)))
    with psycopg.connect(fresh.url) as connection:
        schema.migrate_up(connection, migrations=newer)
        assert [each.oldest_code for each in schema.migrate_status(connection, migrations=MIGRATIONS)] == [
            1,
            2,
            3,
            *steps,
        ]
        if runs:
            assert schema.check_schema(connection, migrations=MIGRATIONS) == len(newer)
            assert schema.migrate_up(connection, migrations=MIGRATIONS) == []
        else:
            with pytest.raises(SchemaMismatch, match="excludes this version"):
                schema.check_schema(connection, migrations=MIGRATIONS)
            with pytest.raises(SchemaMismatch, match="excludes this version"):
                schema.migrate_up(connection, migrations=MIGRATIONS)


def test_a_database_that_a_version_without_the_word_migrated_is_read_and_completed(fresh: postgres.Database) -> None:
    """What such a version applied is for its own code and later."""
    with psycopg.connect(fresh.url, autocommit=True) as connection:
        schema.migrate_up(connection, migrations=MIGRATIONS[:2])
        connection.execute("alter table coatcheck.schema_migrations drop column oldest_code")
        assert schema.check_schema(connection, migrations=MIGRATIONS[:2]) == 2
        with pytest.raises(SchemaMismatch, match="excludes this version"):
            schema.check_schema(connection, migrations=MIGRATIONS[:1])
        schema.migrate_up(connection, migrations=MIGRATIONS)
        rows = connection.execute("select oldest_code from coatcheck.schema_migrations order by number").fetchall()
    assert rows == [(None,), (None,), (3,)]


def test_every_migration_since_the_fourth_says_which_code_may_work_beside_it() -> None:
    silent = [each.number for each in shipped() if "\n-- oldest code: " not in each.sql and each.number > 3]
    assert silent == [], (
        "say `-- oldest code: NNNN, because …` in the header; docs/decisions/0013 tells what it promises"
    )


@pytest.mark.parametrize("said", ["0000", "0002"])
def test_a_header_cannot_name_code_that_is_not_there_yet(said: str) -> None:
    with pytest.raises(ValueError, match="the oldest code of migration 1"):
        read_migrations([("0001_a.sql", f"-- A.\n-- oldest code: {said}, because of nothing.\nselect 1;")])


def test_words_in_the_body_of_a_migration_are_no_header() -> None:
    (found,) = read_migrations([("0001_a.sql", "-- A.\nselect 1;\n-- oldest code: 0000, because of nothing.\n")])
    assert found.oldest_code == 1


def test_tables_without_the_rows_that_tell_of_them_are_refused_with_a_remedy(fresh: postgres.Database) -> None:
    with psycopg.connect(fresh.url) as connection:
        schema.migrate_up(connection)
        connection.execute("drop table coatcheck.schema_migrations")
        connection.commit()
        with pytest.raises(SchemaMismatch, match="expected nothing of migration 1 before it is applied") as refused:
            schema.migrate_up(connection)
    assert "restore them from a backup" in refused.value.next


def test_a_schema_behind_is_refused_and_never_migrated_on_the_way(fresh: postgres.Database) -> None:
    with psycopg.connect(fresh.url) as connection:
        schema.migrate_up(connection, migrations=MIGRATIONS[:1])
        with pytest.raises(SchemaMismatch, match="expected schema version 3, got 1") as refused:
            schema.check_schema(connection, migrations=MIGRATIONS)
    assert (refused.value.code, refused.value.exit_code) == ("schema_behind", 6)
    assert "migrate up" in refused.value.next
    assert states(fresh) == ["applied", "pending", "pending"]


def test_a_table_in_use_ends_the_wait_and_not_the_application(
    fresh: postgres.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "TABLE_WAIT_S", 1)
    wanting = (
        *MIGRATIONS[:2],
        Migration(number=3, name="third", sql="alter table coatcheck.first add column m integer;"),
    )
    with psycopg.connect(fresh.url) as connection, fresh.connect() as reader:
        schema.migrate_up(connection, migrations=MIGRATIONS[:2])
        with reader.transaction():
            reader.execute("select n from coatcheck.first")
            with pytest.raises(Unavailable, match="expected a lock within 1 s"):
                schema.migrate_up(connection, migrations=wanting)
        assert [each.number for each in schema.migrate_up(connection, migrations=wanting)] == [3]


def test_a_read_only_server_is_refused(fresh: postgres.Database) -> None:
    with (
        psycopg.connect(fresh.url, options="-c default_transaction_read_only=on") as connection,
        pytest.raises(Unavailable, match="read only"),
    ):
        schema.migrate_up(connection)


def test_a_connection_in_a_transaction_is_refused(fresh: postgres.Database) -> None:
    with psycopg.connect(fresh.url) as connection:
        connection.execute("select 1")
        with pytest.raises(Refused, match="expected an idle connection"):
            schema.migrate_up(connection)


def test_an_old_server_is_refused(fresh: postgres.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(fresh.url) as connection:
        monkeypatch.setattr(schema, "OLDEST_SERVER", connection.info.server_version // 10_000 + 1)
        with pytest.raises(Refused, match="or later, got"):
            schema.migrate_up(connection)
    assert states(fresh) == ["pending"] * 3


@pytest.mark.parametrize(
    "names",
    [["0002_second.sql"], ["0001_a.sql", "0003_c.sql"], ["1_a.sql"], ["0001_A.sql"], ["0001_a.sql", "notes.txt"]],
)
def test_migrations_are_numbered_without_a_gap(names: list[str]) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_migrations((name, "select 1") for name in names)
