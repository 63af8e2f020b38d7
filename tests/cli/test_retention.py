"""`retention run`: nothing goes without a period, what goes is told, and what could not be done says what to do."""

from collections.abc import Sequence

import psycopg
import pytest

import postgres
from cli.terminal import Terminal
from store.crowd import gather

FIELDS = ["retired", "kept", "history_entries", "specification_bytes", "dry_run"]
DONE, OPEN = 2250, 250


@pytest.fixture
def crowded(terminal: Terminal, database: postgres.Database) -> Terminal:
    """A terminal on a database with 2,500 operations, of which every tenth has still to be looked at."""
    with database.connect() as connection:
        gather(connection, DONE + OPEN)
    return terminal


def specifications(database: postgres.Database) -> int:
    with database.connect() as connection:
        row = connection.execute("select count(*) from coatcheck.specifications").fetchone()
    return int(row[0]) if row else 0


def test_a_dry_run_a_run_and_the_next_one(crowded: Terminal, database: postgres.Database) -> None:
    told = crowded.run("retention", "run", "--days", "0", "--dry-run", "--json").object
    assert list(told) == FIELDS
    assert specifications(database) == DONE + OPEN
    done = crowded.run("retention", "run", "--days", "0", "--actor", "ada", "--reason", "the promise", "--json").object
    assert (told["retired"], told["kept"], told["dry_run"]) == (DONE, OPEN, True)
    assert done == {**told, "dry_run": False, "history_entries": DONE * 5}
    assert specifications(database) == OPEN
    ended = crowded.run("retention", "run", "--days", "0")
    assert (ended.code, ended.out) == (0, "")
    assert f"0 operations retired, {OPEN} older ones kept" in ended.err
    assert crowded.run("audit").code == 0
    listed = crowded.run("operations", "list", "--limit", "100", "--json").objects
    # the ids of one millisecond are in no order, so that the first may be an open one
    name = next(each["operation_id"] for each in listed if each["delivery_state"] == "delivered")
    (entry,) = crowded.run("operations", "show", name, "--json").object["history"]
    assert (entry["event"], entry["actor"], entry["reason"]) == ("retired", "ada", "the promise")


def test_the_period_may_be_a_setting_and_a_days_option_beats_it(crowded: Terminal, database: postgres.Database) -> None:
    run = ("retention", "run", "--json")
    assert crowded.run(*run, COATCHECK_RETENTION_DAYS="1").object["retired"] == 0
    assert crowded.run(*run, "--tenant", "t3", "--days", "0", COATCHECK_RETENTION_DAYS="1").object["retired"] > 300
    assert specifications(database) > 2000


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "--days 90"),
        (["--days", "-1"], "from 0"),
        (["--days", "36501"], "from 0"),
        (["--days", "soon"], "--help"),
        (["--days", "1", "--reason", " "], "--reason"),
        (["--days", "1", "--actor", " "], "--actor"),
    ],
)
def test_what_is_no_period_removes_nothing(
    crowded: Terminal, database: postgres.Database, words: Sequence[str], expected: str
) -> None:
    ended = crowded.run("retention", "run", *words, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert expected in ended.error["message"] + ended.error["next"]
    assert specifications(database) == DONE + OPEN


def test_a_rejected_operation_that_was_retired_is_offered_no_redispatch_and_gets_none(
    terminal: Terminal, database: postgres.Database
) -> None:
    name = terminal.enqueue("k1")["operation_id"]
    with psycopg.connect(database.url) as connection:
        connection.execute(
            "update coatcheck.operations set phase = 'rejected', account = 'genace', dispatch_id = operation_id, revision = 1"
        )
        connection.execute("delete from coatcheck.outbox")
        connection.execute(
            "insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, to_render_state,"
            " to_delivery_state) select operation_id, 1, 'generation_rejected', 'w', now(), 'dispatching', 'rejected', 'none',"
            " 'not_started' from coatcheck.operations"
        )
    shown = terminal.run("reconcile", "show", name, "--offline", "--json").object
    assert [each["decision"] for each in shown["possible"]] == ["redispatch"]
    assert terminal.run("retention", "run", "--days", "0", "--json").object["retired"] == 1
    shown = terminal.run("reconcile", "show", name, "--offline", "--json").object
    assert shown["possible"] == []
    ended = terminal.run("reconcile", "redispatch", name, "--yes", "--reason", "again", "--json")
    assert (ended.code, ended.error["code"]) == (1, "wrong_phase")
    assert "retention removed it" in ended.error["message"]


def test_nobody_is_told_to_enqueue_anew_what_was_retired_and_needs_no_redispatch(
    terminal: Terminal, database: postgres.Database
) -> None:
    name = terminal.enqueue("k1")["operation_id"]
    assert terminal.run("operations", "cancel", name, "--reason", "no need").code == 0
    asked = ("reconcile", "redispatch", name, "--yes", "--reason", "again", "--json")
    before = terminal.run(*asked).error
    assert terminal.run("retention", "run", "--days", "0", "--json").object["retired"] == 1
    assert before["code"] == "wrong_phase"
    assert terminal.run(*asked).error == before
    assert specifications(database) == 0
