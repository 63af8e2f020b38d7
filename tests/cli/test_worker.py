"""`worker` says when it is ready, ends when nothing is left, and is drained by a signal."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import postgres
from cli.conftest import API_KEY
from cli.terminal import Terminal
from coatcheck.cli.collecting import GARBAGE
from coatcheck.sim import ThreadedService
from waiting import until


def test_until_idle_does_everything_and_ends_with_0(provided: Terminal, service: ThreadedService) -> None:
    for number in range(3):
        provided.enqueue(f"k{number}")
    ended = provided.run("worker", "--until-idle")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines()[0].startswith("ready ")
    listed = provided.run("operations", "list", "--json").objects
    assert [each["delivery_state"] for each in listed] == ["delivered"] * 3
    assert all(Path(each["outputs"][0]["uri"].removeprefix("file://")).is_file() for each in listed)
    assert len(service.posts) == 3


COLLECTING = """
import gc, sys
from coatcheck.cli import main
sys.argv[0] = "coatcheck"
code = main()
sys.stdout.write(f"{gc.isenabled()} {gc.get_threshold()[0]}")
sys.exit(code)
"""


def test_it_looks_for_cycles_seldom_but_does(provided: Terminal) -> None:
    """Python's own pace takes a twentieth of a busy worker's processor; without any, what fails in circles would stay."""
    command = [sys.executable, "-c", COLLECTING, "worker", "--until-idle"]
    ended = subprocess.run(command, env=dict(provided.environ), capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == f"True {GARBAGE}"


def test_providers_take_turns_where_there_are_fewer_places_than_providers(
    provided: Terminal, service: ThreadedService
) -> None:
    """One place for each role and three accounts: none of them waits for another's end."""
    own = {"COATCHECK_CONCURRENCY__DISPATCH": "1", "COATCHECK_CONCURRENCY__OBSERVE": "1"}
    for name in ("AMBER", "RUBY"):
        own[f"COATCHECK_PROVIDERS__{name}__BASE_URL"] = service.base_url
        own[f"COATCHECK_PROVIDERS__{name}__API_KEY"] = API_KEY
        own[f"COATCHECK_PROVIDERS__{name}__LOOK_MIN_S"] = "0.05"
    for number, name in enumerate(["amber", "ruby", "genace"] * 2):
        provided.enqueue(f"k{number}", "--provider", name)
    narrow = Terminal(folder=provided.folder, environ={**provided.environ, **own})
    assert narrow.run("worker", "--until-idle").code == 0
    listed = provided.run("operations", "list", "--json").objects
    assert [each["delivery_state"] for each in listed] == ["delivered"] * 6
    assert len(service.posts) == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_it(provided: Terminal, service: ThreadedService, number: signal.Signals) -> None:
    """A POST that is under way is finished and saved; then the worker ends."""
    service.script([{"on": "create", "nth": 1, "kind": "stall", "seconds": 1}])
    operation_id = provided.enqueue("k1")["operation_id"]
    with provided.started("worker") as running:
        running.said("ready ")
        until(lambda: service.posts)
        running.process.send_signal(number)
        ended = running.ended()
    assert (ended.code, ended.out) == (0, "")
    assert "draining" in ended.err
    shown = provided.run("operations", "show", operation_id, "--json").object
    assert shown["phase"] == "accepted"
    assert all(message["action"] == "observe" for message in shown["messages"])


def test_a_second_interrupt_stops_it_with_130_and_leaves_doubt(provided: Terminal, service: ThreadedService) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "stall"}])
    operation_id = provided.enqueue("k1")["operation_id"]
    with provided.started("worker") as running:
        running.said("ready ")
        until(lambda: service.posts)
        running.process.send_signal(signal.SIGINT)
        running.said("draining")
        running.process.send_signal(signal.SIGINT)
        ended = running.ended()
    assert ended.code == 130
    shown = provided.run("operations", "show", operation_id, "--json").object
    assert shown["phase"] in {"uncertain", "dispatching"}
    assert len(shown["dispatches"]) == 1


def test_a_role_does_its_own_and_no_more(provided: Terminal, service: ThreadedService) -> None:
    operation_id = provided.enqueue("k1")["operation_id"]
    assert provided.run("worker", "--roles", "observe,deliver", "--until-idle").code == 0
    assert service.posts == ()
    assert provided.run("worker", "--roles", "dispatch", "--until-idle").code == 0
    shown = provided.run("operations", "show", operation_id, "--json").object
    assert (shown["phase"], shown["render_state"]) == ("accepted", "none")


def test_its_log_is_json_off_a_terminal(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    provided.enqueue("k1")
    with database.connect() as connection:
        connection.execute("alter table coatcheck.workers rename column stale to stale_away")
    ended = provided.run("worker", "--until-idle")
    assert ended.code == 0
    records = [json.loads(line) for line in ended.err.splitlines() if not line.startswith("ready ")]
    assert {"event": "report failed", "logger": "coatcheck.workers.report", "level": "warning"}.items() <= records[
        0
    ].items()
    assert records[0]["error"] == "UndefinedColumn"


def test_a_service_that_cannot_be_reached_is_said_once_and_not_at_every_try(provided: Terminal) -> None:
    """Three tries and one warning, with the cause and without the address."""
    away = Terminal(
        folder=provided.folder,
        environ={**provided.environ, "COATCHECK_PROVIDERS__GENACE__BASE_URL": "http://127.0.0.1:9"},
    )
    away.enqueue("k1")
    with away.started("worker") as running:
        running.said("service unreachable")
        until(lambda: away.run("stats", "--json").object["action_ms"].get("dispatch", {}).get("count", 0) > 1)
        running.process.send_signal(signal.SIGTERM)
        ended = running.ended()
    assert ended.err.count("service unreachable") == 1
    assert '"cause": "refused"' in ended.err
    assert "127.0.0.1" not in ended.err
