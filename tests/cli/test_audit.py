"""`audit` as the person on call meets it: what it says, how it ends, and how it goes on where it was stopped."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.rows import TupleRow

import postgres
from cli.terminal import Terminal
from coatcheck.sim import ThreadedService
from coatcheck.store.audit import CHUNK
from store.crowd import gather
from waiting import until

FIELDS = {"check", "kind", "operation_id", "tenant_id", "dispatch_id", "detail", "remedy"}


def lose_lane(database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("delete from coatcheck.outbox")


def test_a_sound_database_is_0_and_says_how_much_was_checked(terminal: Terminal) -> None:
    last = [terminal.enqueue(f"k{number}")["operation_id"] for number in range(2)][-1]
    ended = terminal.run("audit")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"2 operations checked, the last {last}, nothing found\n"
    assert terminal.run("audit", "--json").code == 0


def test_what_a_worker_leaves_is_sound(provided: Terminal, service: ThreadedService) -> None:
    """Delivered outputs, a lost reply and a refusal, on both sides of an allowance's row."""
    service.script(
        [
            {"on": "create", "nth": 1, "kind": "accept_then_drop"},
            {"on": "create", "nth": 2, "kind": "status", "status": 422},
        ]
    )
    for number in range(4):
        provided.enqueue(f"k{number}", "--estimate", "5", tenant=f"t{number % 2}")
    assert provided.run("worker", "--until-idle").code == 0
    phases = sorted(each["phase"] for each in provided.run("operations", "list", "--json").objects)
    assert phases == ["accepted", "accepted", "rejected", "uncertain"]
    assert (provided.run("audit").code, provided.run("audit").out) == (0, "")


def test_findings_are_5_with_id_and_remedy_for_programs_and_for_people(
    terminal: Terminal, database: postgres.Database
) -> None:
    operation_id = terminal.enqueue("k1")["operation_id"]
    lose_lane(database)
    ended = terminal.run("audit", "--json")
    assert (ended.code, set(ended.object)) == (5, FIELDS)
    assert (ended.object["check"], ended.object["kind"]) == ("S12", "course_missing")
    assert (ended.object["operation_id"], ended.object["tenant_id"]) == (operation_id, "t1")
    assert (ended.object["dispatch_id"], ended.object["remedy"] != "") == (None, True)
    shown = terminal.run("audit")
    assert shown.code == 5
    assert operation_id in shown.out
    assert ended.object["remedy"] in shown.out
    assert "1 operations checked" in shown.err
    assert "1 findings" in shown.err


def test_checks_are_picked_and_operations_left_out(terminal: Terminal, database: postgres.Database) -> None:
    first, second = (terminal.enqueue(f"k{number}")["operation_id"] for number in range(2))
    lose_lane(database)
    assert terminal.run("audit", "--check", "S7", "--check", "S1", "--json").code == 0
    picked = terminal.run("audit", "--check", "S12", "--after", first, "--json")
    assert (picked.code, picked.object["operation_id"]) == (5, second)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--check", "S13"], "S1, S2"),
        (["--check", "s7"], "S1, S2"),
        (["--check", ""], "S1, S2"),
        (["--after", "op_nonsense"], "op_nonsense"),
        (["--after", ""], "id of an operation"),
    ],
)
def test_a_check_and_a_place_that_there_are_not_are_refused_with_2(
    terminal: Terminal, words: list[str], expected: str
) -> None:
    ended = terminal.run("audit", *words, "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert expected in ended.error["message"]


@contextmanager
def held_up(database: postgres.Database) -> Iterator[tuple[psycopg.Connection[TupleRow], str]]:
    """A crowd of more than a chunk, at the last dispatch of which S11 waits; and where the first chunk ends."""
    with database.connect() as connection:
        gather(connection, CHUNK + 10)
        (place,) = connection.execute(
            "select coatcheck.operation_text(operation_id) from coatcheck.operations order by operation_id offset %s limit 1",
            [CHUNK - 1],
        ).fetchall()
        connection.execute(
            "update coatcheck.dispatches set outcome = 'submission_failed' where operation_id ="
            " (select operation_id from coatcheck.operations order by operation_id desc limit 1)"
        )
        connection.execute(
            "create or replace function coatcheck.outcome_rank(outcome text) returns integer language plpgsql as $$ begin"
            " if outcome = 'submission_failed' then perform pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7); end if;"
            " return 3; end $$"
        )
        connection.execute("select pg_advisory_lock(7)")
        yield connection, place[0]


def waiting_session(connection: psycopg.Connection[TupleRow]) -> list[TupleRow]:
    """The audit, where it can get no further."""
    waiting = "application_name = 'coatcheck audit' and wait_event = 'advisory'"
    return connection.execute(f"select pid from pg_stat_activity where {waiting}".encode()).fetchall()


def test_an_interrupted_audit_says_where_to_go_on(terminal: Terminal, database: postgres.Database) -> None:
    with held_up(database) as (connection, place):
        with terminal.started("audit", "--check", "S11", "--check", "S2", "--json") as running:
            until(lambda: waiting_session(connection))
            running.process.send_signal(signal.SIGINT)
            ended = running.ended()
        assert (ended.code, ended.error["code"]) == (130, "interrupted")
        assert ended.error["next"] == f"go on with `coatcheck audit --check S2 --check S11 --after {place}`"
        connection.execute("select pg_advisory_unlock(7)")
        rest = terminal.run("audit", "--check", "S2", "--check", "S11", "--after", place)
    assert (rest.code, rest.out) == (0, "")
    assert rest.err.startswith("10 operations checked")


def test_an_audit_that_loses_the_database_is_6_and_says_where_to_go_on(
    terminal: Terminal, database: postgres.Database
) -> None:
    with held_up(database) as (connection, place), terminal.started("audit", "--check", "S11", "--json") as running:
        until(lambda: waiting_session(connection))
        connection.execute("select pg_terminate_backend(%s)", waiting_session(connection)[0])
        ended = running.ended()
    assert (ended.code, ended.error["code"]) == (6, "unavailable")
    assert ended.error["next"].endswith(f"go on with `coatcheck audit --check S11 --after {place}`")


def test_the_audit_leaves_no_session_behind_and_needs_no_more_than_reading(
    terminal: Terminal, database: postgres.Database
) -> None:
    """A role that may do nothing but read audits everything."""
    terminal.enqueue("k1")
    role = f"auditor_{database.name}"
    with database.connect() as connection:
        connection.execute(f"create role {role} login".encode())
        connection.execute(f"grant usage on schema coatcheck to {role}".encode())
        connection.execute(f"grant select on all tables in schema coatcheck to {role}".encode())
        connection.execute(f"grant execute on all functions in schema coatcheck to {role}".encode())
        ended = terminal.run("audit", COATCHECK_DATABASE_URL=database.url.replace("//postgres@", f"//{role}@"))
        assert (ended.code, ended.out) == (0, "")
        left = connection.execute("select from pg_stat_activity where application_name = 'coatcheck audit'").fetchall()
        assert left == []
        connection.execute(f"drop owned by {role}".encode())
        connection.execute(f"drop role {role}".encode())
