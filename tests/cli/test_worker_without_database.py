"""A worker whose database went away can be told to end: only what must not be lost makes it wait, and a second interrupt ends that, too."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import postgres
from cli.conftest import API_KEY, GENACE
from cli.terminal import Running, Terminal, plain_environ
from coatcheck.devdb import DevPostgres
from coatcheck.sim import ThreadedService
from coatcheck.store import schema
from waiting import until

ENDS_WITHIN_S = 15.0
LONG_LOOKS = {f"{GENACE}WAIT_S": "50", f"{GENACE}OBSERVE_TIMEOUT_S": "60"}
LONG_RENDER = b'{"prompt": "a slow coat", "sim": {"queued_s": 0, "processing_s": 300}}'


@pytest.fixture
def server(pytestconfig: pytest.Config) -> Iterator[DevPostgres]:
    """A server that nobody else's test feels the loss of."""
    with postgres.served(str(pytestconfig.getoption("--pg"))) as own:
        with psycopg.connect(own.url()) as connection:
            schema.migrate_up(connection)
        yield own


@pytest.fixture
def alone(server: DevPostgres, service: ThreadedService, tmp_path: Path) -> Terminal:
    """A terminal with that server, and the simulated service as provider genace."""
    own = {
        "COATCHECK_DATABASE_URL": server.url(),
        "COATCHECK_HOME": str(tmp_path / "home"),
        "COATCHECK_SINK": f"file://{tmp_path / 'outputs'}",
        f"{GENACE}BASE_URL": service.base_url,
        f"{GENACE}API_KEY": API_KEY,
    }
    return Terminal(folder=tmp_path, environ={**plain_environ(), **own})


def ended(running: Running) -> int:
    return running.process.wait(ENDS_WITHIN_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_could_not_be_given_back_keeps_no_worker(
    alone: Terminal, server: DevPostgres, service: ThreadedService, number: signal.Signals
) -> None:
    """A look that is held open is cut off; that it cannot be released is no reason to stay."""
    alone.enqueue("k1", given=LONG_RENDER)
    with alone.started("worker", **LONG_LOOKS) as running:
        until(lambda: any(job["looks"] for job in service.jobs()))
        server.stop("immediate")
        running.process.send_signal(number)
        assert ended(running) == 0, running.err.read_text()


def test_a_paid_id_waits_for_the_database_and_is_saved(
    alone: Terminal, server: DevPostgres, service: ThreadedService
) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "stall", "seconds": 1}])
    operation_id = alone.enqueue("k1", given=LONG_RENDER)["operation_id"]
    with alone.started("worker") as running:
        until(lambda: service.posts)
        server.stop("immediate")
        running.process.send_signal(signal.SIGTERM)
        running.said("batch failed")
        server.start()
        assert ended(running) == 0, running.err.read_text()
    shown = alone.run("operations", "show", operation_id, "--json").object
    assert shown["phase"] == "accepted"
    assert [shown["remote_job_id"]] == [job["id"] for job in service.jobs()]


def test_a_second_interrupt_ends_even_that_wait_with_130(
    alone: Terminal, server: DevPostgres, service: ThreadedService
) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "stall", "seconds": 1}])
    operation_id = alone.enqueue("k1", given=LONG_RENDER)["operation_id"]
    with alone.started("worker") as running:
        until(lambda: service.posts)
        server.stop("immediate")
        running.process.send_signal(signal.SIGINT)
        running.said("batch failed")
        assert running.process.poll() is None
        running.process.send_signal(signal.SIGINT)
        assert ended(running) == 130, running.err.read_text()
    server.start()
    assert alone.run("operations", "show", operation_id, "--json").object["phase"] == "dispatching"


def test_a_second_interrupt_cuts_off_a_post_that_no_reply_comes_to(
    alone: Terminal, server: DevPostgres, service: ThreadedService
) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "stall"}])
    alone.enqueue("k1", given=LONG_RENDER)
    with alone.started("worker") as running:
        until(lambda: service.posts)
        server.stop("immediate")
        running.process.send_signal(signal.SIGINT)
        running.said("draining")
        running.process.send_signal(signal.SIGINT)
        assert ended(running) == 130, running.err.read_text()
