"""`migrate sql` and `migrate check` as a deployment runs them."""

import pytest

import postgres
from cli.terminal import Terminal
from coatcheck.store.migrations import required_version, script, shipped

AWAY = "postgresql://ada:canary-password@127.0.0.1:1/x"


@pytest.fixture
def bare(terminal: Terminal, database: postgres.Database) -> Terminal:
    """A terminal on a database without the schema."""
    with database.connect() as connection:
        connection.execute("drop schema coatcheck cascade")
    return terminal


def test_what_sql_prints_needs_no_database_to_print_and_makes_check_find_nothing(
    bare: Terminal, database: postgres.Database
) -> None:
    printed = bare.run("migrate", "sql", COATCHECK_DATABASE_URL=AWAY)
    assert (printed.code, printed.out, printed.err) == (0, script(0), "")
    with database.connect() as connection:
        connection.execute(printed.out.encode())
    checked = bare.run("migrate", "check")
    assert (checked.code, checked.out) == (0, f"schema version {required_version()}: exactly this version's\n")
    status = bare.run("migrate", "status", "--json").object
    assert status["version"] == status["required_version"] == required_version()
    assert {each["state"] for each in status["migrations"]} == {"applied"}


def test_sql_prints_a_range_and_refuses_one_that_is_none(terminal: Terminal) -> None:
    assert terminal.run("migrate", "sql", "--from", "1", "--to", "3", COATCHECK_DATABASE_URL=AWAY).out == script(1, 3)
    refused = terminal.run("migrate", "sql", "--from", "3", "--to", "2", "--json", COATCHECK_DATABASE_URL=AWAY)
    assert (refused.code, refused.error["code"]) == (2, "refused")
    assert refused.error["message"].endswith("got --from 3 --to 2")


def test_check_tells_what_is_behind_with_5(bare: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute(script(0, 2).encode())
    ended = bare.run("migrate", "check", "--json")
    found = ended.object
    assert (ended.code, found["ok"], found["version"], found["required_version"]) == (5, False, 2, required_version())
    assert [(each["kind"], each["subject"]) for each in found["findings"]] == [
        ("behind", f"{each.number:04} {each.name}") for each in shipped()[2:]
    ]
    assert "behind" in bare.run("migrate", "check").out


@pytest.mark.parametrize(("oldest_code", "starts"), [(required_version(), True), (required_version() + 1, False)])
def test_check_tells_of_a_newer_version_and_whether_this_one_may_work_beside_it(
    terminal: Terminal, database: postgres.Database, oldest_code: int, starts: bool
) -> None:
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.schema_migrations values (%s, 'later', repeat('0', 64), now(), %s)",
            (required_version() + 1, oldest_code),
        )
    ended = terminal.run("migrate", "check", "--json")
    (finding,) = ended.object["findings"]
    assert (ended.code, finding["kind"]) == (5, "ahead")
    assert ("may work beside it" in finding["detail"]) is starts
    worker = terminal.run("worker", "--roles", "reconcile", "--until-idle", "--json")
    assert worker.code == (0 if starts else 6)
    if starts:
        assert terminal.run("migrate", "up", "--json").object == {"version": required_version() + 1, "applied": []}
    else:
        assert worker.error["code"] == "schema_behind"
        assert "install the newer version" in worker.error["next"]


def test_check_tells_what_drifted_with_5(terminal: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("drop index coatcheck.outbox_due_idx")
    ended = terminal.run("migrate", "check", "--json")
    (finding,) = ended.object["findings"]
    assert (ended.code, finding["kind"], finding["subject"]) == (5, "missing", "index outbox.outbox_due_idx")
    assert "create index concurrently" in finding["remedy"]


def test_check_tells_a_changed_migration_with_5(terminal: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("update coatcheck.schema_migrations set sha256 = repeat('0', 64) where number = 2")
    (finding,) = terminal.run("migrate", "check", "--json").object["findings"]
    assert (finding["kind"], finding["subject"]) == ("changed", "0002 enqueue")


def test_a_table_that_stays_locked_ends_migrate_up_with_6_and_a_remedy(
    bare: Terminal, database: postgres.Database
) -> None:
    with database.connect() as connection, database.connect() as holder:
        connection.execute(script(0, 3).encode())
        with holder.transaction():
            holder.execute("select from coatcheck.dispatches")
            ended = bare.run("migrate", "up", "--json")
        assert (ended.code, ended.error["code"]) == (6, "unavailable")
        assert "pg_stat_activity" in ended.error["next"]
        assert bare.run("migrate", "up", "--json").object["version"] == required_version()
