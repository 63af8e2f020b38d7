"""`charges report`: the same sums for people, programs and spreadsheets, and no text in it that a spreadsheet would obey."""

import csv
import io
import json

import psycopg
import pytest

import postgres
from cli.terminal import Terminal
from store.crowd import gather

HEADER = (
    "tenant_id,unit,dispatch_count,charged,charged_by_service,charged_as_assumed,refunded,held,uncertain_count,uncertain_held,"
    "orphan_count,orphan_charged"
)


@pytest.fixture
def spent(terminal: Terminal, database: postgres.Database) -> Terminal:
    """A terminal on a database with 700 sound operations of seven tenants."""
    with database.connect() as connection:
        gather(connection, 700)
    return terminal


def rename(database: postgres.Database, name: str) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("update coatcheck.operations set tenant_id = %s where tenant_id = 't1'", [name])


def test_the_three_forms_say_the_same(spent: Terminal) -> None:
    rows = spent.run("charges", "report", "--json").objects
    assert [row["tenant_id"] for row in rows] == [f"t{number}" for number in range(7)]
    assert list(rows[0]) == HEADER.split(",")
    assert sum(row["dispatch_count"] for row in rows) == 700
    assert (sum(row["charged"] for row in rows), sum(row["held"] for row in rows)) == (1260, 140)
    ended = spent.run("charges", "report", "--by", "tenant", "--csv")
    assert ended.out.splitlines()[0] == HEADER
    read = list(csv.DictReader(io.StringIO(ended.out, newline="")))
    assert [{name: str(value) for name, value in row.items()} for row in rows] == read
    table = spent.run("charges", "report").out
    assert "dispatch count" in table
    assert "t6" in table
    (provider,) = spent.run("charges", "report", "--by", "provider", "--json").objects
    assert (provider["provider"], provider["charged"], provider["held"]) == ("genace", 1260, 140)


def test_csv_ends_its_lines_as_rfc_4180_says_and_is_utf_8_whatever_the_locale(
    spent: Terminal, database: postgres.Database
) -> None:
    rename(database, 'a "b", ü;c')
    ended = spent.run("charges", "report", "--csv", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert ended.code == 0, ended.err
    lines = ended.out.split("\r\n")
    assert lines[-1] == ""
    assert len(lines) == 9
    assert '"a ""b"", ü;c"' in ended.out


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("\tx", "'\\tx"),
        ("\r=x", "'\\r=x"),
        ("'x", "''x"),
        ("a\n=x", "a\\n=x"),
        ("a=1", "a=1"),
    ],
)
def test_no_tenant_is_a_formula(spent: Terminal, database: postgres.Database, name: str, field: str) -> None:
    rename(database, name)
    ended = spent.run("charges", "report", "--csv")
    names = [row["tenant_id"] for row in csv.DictReader(io.StringIO(ended.out, newline=""))]
    assert field in names
    assert name in [row["tenant_id"] for row in spent.run("charges", "report", "--json").objects]


def test_a_period_is_of_marks(spent: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("update coatcheck.dispatches set begun_at = '2026-03-01T00:00:00Z'")

    def count(*words: str) -> int:
        return sum(row["dispatch_count"] for row in spent.run("charges", "report", "--json", *words).objects)

    assert count("--from", "2026-03-01", "--until", "2026-03-02") == 700
    assert count("--from", "2026-03-01T01:00:00+01:00") == 700
    assert count("--until", "2026-03-01T00:00:00Z") == 0
    empty = spent.run("charges", "report", "--until", "2026-03-01", "--csv")
    assert empty.out.splitlines() == [HEADER]
    assert "no dispatch" in spent.run("charges", "report", "--until", "2026-03-01").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "worker"], "--by: expected tenant or provider, got 'worker'"),
        (["--from", "yesterday"], "--from: expected an instant in ISO 8601"),
        (["--from", "2026-03-01T00:00:00"], "--from: expected an instant in ISO 8601 with an offset"),
        (["--until", "2026-02-30"], "--until: expected an instant"),
        (["--from", "2026-03-01", "--until", "2026-03-01"], "--until: expected an instant after --from"),
    ],
)
def test_a_report_that_makes_no_sense_is_refused(terminal: Terminal, words: list[str], said: str) -> None:
    ended = terminal.run("charges", "report", "--json", *words)
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert said in ended.error["message"]


def test_one_form_at_a_time(terminal: Terminal) -> None:
    ended = terminal.run("charges", "report", "--csv", "--json")
    assert (ended.code, json.loads(ended.err.splitlines()[-1])["message"]) == (2, "expected --csv or --json, got both")
