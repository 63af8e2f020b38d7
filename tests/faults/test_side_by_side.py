"""The schema moves under running workers, and workers of the version before start beside it: each operation has one POST all the same."""

from collections.abc import Iterator

import psycopg
import pytest

import postgres
from cli.terminal import Terminal, plain_environ
from coatcheck.sim import ThreadedService, simulated_service
from coatcheck.store import schema
from coatcheck.store.migrations import Migration, required_version, shipped
from waiting import until

OPERATIONS = 24
LOST = (3, 8)
"""Which POSTs have their replies lost."""
EXPAND = """-- What a version to come adds: a column with a default, a table, an index, and a function written anew.
-- oldest code: {version:04}, because code before it neither reads nor writes what this adds.

alter table coatcheck.operations add column colour text not null default 'red';
alter table coatcheck.outbox add column colour text;
create table coatcheck.colours (colour text not null, constraint colours_pkey primary key (colour));
create index operations_colour_idx on coatcheck.operations (colour, operation_id) where colour <> 'red';
create or replace function coatcheck.due_now() returns timestamptz language sql stable parallel safe as 'select statement_timestamp()';
select coatcheck.hand_over();
"""


@pytest.fixture
def service() -> Iterator[ThreadedService]:
    """The other side, which loses some replies."""
    with simulated_service(seed=11) as running:
        running.script([{"on": "create", "nth": nth, "kind": "accept_then_drop"} for nth in LOST])
        yield running


@pytest.fixture
def terminal(
    database: postgres.Database, service: ThreadedService, tmp_path_factory: pytest.TempPathFactory
) -> Terminal:
    folder = tmp_path_factory.mktemp("side")
    own = {
        "COATCHECK_DATABASE_URL": database.url,
        "COATCHECK_HOME": str(folder / "home"),
        "COATCHECK_SINK": f"file://{folder / 'outputs'}",
        "COATCHECK_PROVIDERS__GENACE__BASE_URL": service.base_url,
        "COATCHECK_PROVIDERS__GENACE__API_KEY": "key",
        "COATCHECK_PROVIDERS__GENACE__LOOK_MIN_S": "0.05",
        "COATCHECK_PROVIDERS__GENACE__WAIT_S": "1",
    }
    return Terminal(folder=folder, environ={**plain_environ(), **own})


def test_workers_go_on_and_start_on_a_newer_schema_that_allows_it(
    terminal: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    newer = required_version() + 1
    expand = Migration(number=newer, name="colours", sql=EXPAND.format(version=required_version()))
    with terminal.started("worker") as before, database.connect() as connection:
        before.said("ready ")
        for number in range(OPERATIONS // 2):
            terminal.enqueue(f"before{number}")
        with psycopg.connect(database.url) as runner:
            schema.migrate_up(runner, migrations=[*shipped(), expand])
        for number in range(OPERATIONS // 2):
            terminal.enqueue(f"after{number}")
        assert terminal.run("worker", "--until-idle").code == 0
        open_ones = "select from coatcheck.operations where phase in ('prepared', 'dispatching') or (phase = 'accepted' and delivery_state <> 'delivered')"
        until(lambda: connection.execute(open_ones).rowcount == 0)
        phases = connection.execute(
            "select phase, count(*)::integer from coatcheck.operations group by phase"
        ).fetchall()
        before.process.terminate()
        assert before.ended().code == 0
    assert dict(phases) == {"accepted": OPERATIONS - len(LOST), "uncertain": len(LOST)}
    assert len(service.posts) == OPERATIONS
    assert terminal.run("audit").code == 0
    assert terminal.run("doctor", "--json").object["ok"] is True


def test_a_schema_that_is_for_its_own_code_only_is_refused_by_a_worker_that_starts(
    terminal: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    newer = required_version() + 1
    contract = Migration(number=newer, name="colours", sql=EXPAND.format(version=newer))
    terminal.enqueue("k1")
    with psycopg.connect(database.url) as runner:
        schema.migrate_up(runner, migrations=[*shipped(), contract])
    ended = terminal.run("worker", "--until-idle", "--json")
    assert (ended.code, ended.error["code"]) == (6, "schema_behind")
    assert service.posts == ()
