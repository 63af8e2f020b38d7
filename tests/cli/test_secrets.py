"""Nothing that a command says or logs, at any level, carries a key, a prompt, a password or a service's free text."""

import json
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

import postgres
from cli.conftest import API_KEY
from cli.terminal import Terminal
from coatcheck.sim import ThreadedService

PASSWORD = "canary-password-9c2e"
PROMPT = "canary-prompt-77aa"
FAULTS = (
    *(
        {"on": "create", "nth": number, "kind": "status", "status": status}
        for number, status in enumerate((422, 500), start=1)
    ),
    {"on": "create", "nth": 3, "kind": "accept_then_drop"},
    {"on": "create", "nth": 4, "kind": "malformed"},
    {"on": "look", "per": "job", "nth": 1, "kind": "drop"},
    {"on": "output", "per": "job", "nth": 1, "kind": "status", "status": 500},
)


@pytest.fixture
def guarded(provided: Terminal, database: postgres.Database) -> Iterator[Terminal]:
    """The terminal with a password in the address of its database."""
    role = f"secret_{database.name}"
    with database.connect() as connection:
        connection.execute(
            sql.SQL("create role {} login superuser password {}").format(sql.Identifier(role), sql.Literal(PASSWORD))
        )
    fields = psycopg.conninfo.conninfo_to_dict(database.url)
    address = f"postgresql://{role}:{PASSWORD}@/{fields['dbname']}?host={fields['host']}&port={fields['port']}"
    yield Terminal(folder=provided.folder, environ={**provided.environ, "COATCHECK_DATABASE_URL": address})
    with database.connect() as connection:
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_a_worker_on_a_failing_service_gives_nothing_away(guarded: Terminal, service: ThreadedService) -> None:
    service.script(list(FAULTS))
    specification = json.dumps({"prompt": PROMPT}).encode()
    told = [
        guarded.run("enqueue", "--tenant", "t", "--key", f"k{n}", "-", "--json", given=specification) for n in range(7)
    ]
    with guarded.started("worker", "--until-idle", "--log-level", "debug", PYTHONASYNCIODEBUG="1") as running:
        ended = running.ended()
    assert ended.code == 0
    assert ended.err.count("\n") > 1
    operations = guarded.run("operations", "list", "--json")
    shown = [guarded.run("operations", "show", each["operation_id"], "--json") for each in operations.objects]
    rest = [
        guarded.run(*words)
        for words in (["stats"], ["doctor"], ["doctor", "--json"], ["providers", "list"], ["operations", "list"])
    ]
    everything = "".join(each.out + each.err for each in [*told, ended, operations, *shown, *rest])
    assert {each["phase"] for each in operations.objects} >= {"rejected", "uncertain", "accepted"}
    assert not [secret for secret in (PASSWORD, PROMPT, API_KEY) if secret in everything]


def test_an_outage_of_the_database_gives_nothing_away(guarded: Terminal, database: postgres.Database) -> None:
    with guarded.started("worker", "--log-level", "debug") as running:
        running.said("ready ")
        with database.connect() as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'coatcheck%'"
                " and datname = current_database()"
            )
            connection.execute(sql.SQL("alter role {} nologin").format(sql.Identifier(f"secret_{database.name}")))
        running.said("failed")
        running.process.terminate()
        ended = running.ended()
    assert PASSWORD not in ended.err
    assert ended.code == 0


def test_a_surprise_is_told_by_class_and_place_only() -> None:
    program = (
        "import sys; from coatcheck.cli import ends\n"
        "with ends.Ends(['--json']) as end:\n"
        f"    raise ValueError('{PASSWORD}')\n"
        "sys.exit(end.exit_code)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert json.loads(ended.stderr)["message"] == "unforeseen ValueError in <module>:3"


def test_records_of_other_libraries_keep_place_and_level_only() -> None:
    program = (
        "import logging; from coatcheck.cli import logs; logs.configure('debug')\n"
        f"logging.getLogger('aiohttp.client').warning('GET http://{PASSWORD}/')\n"
        f"logging.getLogger('psycopg').debug('dsn %s', '{PASSWORD}')\n"
        "try:\n"
        f"    raise ValueError('{PASSWORD}')\n"
        "except ValueError:\n"
        "    logging.getLogger('asyncio').exception('task')\n"
        "    logging.getLogger('coatcheck.workers.loop').exception('ours', extra={'operation_id': 'op_1'})\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(each["logger"], each["level"]) for each in records] == [
        ("aiohttp.client", "warning"),
        ("psycopg", "debug"),
        ("asyncio", "error"),
        ("coatcheck.workers.loop", "error"),
    ]
    assert [each.get("error") for each in records] == [None, None, "ValueError", "ValueError"]
    assert (records[3]["event"], records[3]["operation_id"]) == ("ours", "op_1")
    assert PASSWORD not in ended.stderr
