"""`worker --processes N`: N real workers under one command, which lose nothing when one of them, or the command itself, is killed."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from datetime import datetime
from itertools import count

import pytest

import postgres
from cli.several import READY, in_a_group_of_its_own, lives, narrow, pids, ready
from cli.terminal import COATCHECK, Terminal
from coatcheck.sim import ThreadedService
from waiting import until

LEASES_OVER_S = 120.0
RENDER_S = 0.6
LINES = ("marks", "money", "looks", "reads", "leases", "aside")
SPECIFICATION = json.dumps({"prompt": "a red coat", "sim": {"queued_s": 0, "processing_s": RENDER_S}}).encode()


def enqueue(terminal: Terminal, number: int) -> str:
    operation_id: str = terminal.enqueue(f"k{number}", given=SPECIFICATION)["operation_id"]
    return operation_id


def one(database: postgres.Database, statement: str) -> int:
    with database.connect() as connection:
        (found,) = connection.execute(statement.encode()).fetchone() or (None,)
    assert isinstance(found, int)
    return found


def lines(database: postgres.Database) -> set[str]:
    """What the connections of workers are called. Two processes have each of them twice at most."""
    statement = "select application_name, count(*) from pg_stat_activity where datname = current_database() group by 1"
    with database.connect() as connection:
        found = connection.execute(statement).fetchall()
    ours = {name.removeprefix("coatcheck "): times for name, times in found if name.startswith("coatcheck ")}
    assert max(ours.values()) <= 2
    return set(ours)


def most_in_flight(service: ThreadedService) -> int:
    """At the POST that found most company: how many earlier ones were not over, and itself."""
    made = {each["id"]: datetime.fromisoformat(each["created_at"]).timestamp() for each in service.jobs()}
    spans = [
        (datetime.fromisoformat(post.at).timestamp(), made[str(post.created)] + RENDER_S) for post in service.posts
    ]
    return max(sum(1 for began, over in spans[: index + 1] if over > spans[index][0]) for index in range(len(spans)))


def test_until_idle_each_ends_when_nothing_is_left_and_a_cap_holds_over_all(
    provided: Terminal, service: ThreadedService
) -> None:
    """Two places of the account, shared by two processes that have far more."""
    service.script([{"on": "create", "kind": "stall", "seconds": 0.1}])
    for number in range(6):
        enqueue(provided, number)
    assert provided.run("worker", "--roles", "reconcile", "--until-idle").code == 0
    capped = ("providers", "set", "genace", "--max-in-flight", "2", "--reason", "their plan")
    assert provided.run(*capped).code == 0
    with provided.started("worker", "--processes", "2", "--until-idle") as running:
        ended = running.ended()
    assert (ended.code, ended.out) == (0, "")
    assert sorted(READY.findall(ended.err)) == ["1", "2"]
    listed = provided.run("operations", "list", "--json").objects
    assert [each["delivery_state"] for each in listed] == ["delivered"] * 6
    assert len(service.posts) == 6
    assert most_in_flight(service) == 2


def test_a_killed_process_is_started_anew_and_what_it_had_begun_is_not_sent_again(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    """It is killed with a POST at the service. Each has a port of its own, which the new one takes over."""
    service.script([{"on": "create", "nth": nth, "kind": "stall", "seconds": 5} for nth in (1, 2)])
    port = free_ports()
    provided = narrow(provided)
    with provided.started("worker", "--processes", "2", "--health-port", str(port)) as running:
        assert sorted(ready(running)) == ["1", "2"]
        for number in range(6):
            enqueue(provided, number)
        until(lambda: len(service.posts) >= 2)
        os.kill(dict(pids(running))[2], signal.SIGKILL)
        running.said("process starts anew")
        assert ready(running, 3).count("2") == 2
        assert [name_at(port).split(".")[-1], name_at(port + 1).split(".")[-1]] == ["1", "2"]
        until(lambda: one(database, "select count(*) from coatcheck.operations where phase = 'accepted'") == 5)
        database.move_time(LEASES_OVER_S)
        until(lambda: one(database, "select count(*) from coatcheck.outbox where parked_at is null") == 0)
        # nothing was read once more
        assert lines(database) | {"reads"} == {*LINES, "listener", "health"}
        running.process.send_signal(signal.SIGTERM)
        assert running.ended().code == 0
    assert len(service.posts) == 6
    phases = [each["phase"] for each in provided.run("operations", "list", "--json").objects]
    assert (phases.count("accepted"), phases.count("uncertain")) == (5, 1)
    assert not any(lives(pid) for _, pid in pids(running))


def test_when_the_parent_is_killed_its_processes_drain_and_end(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    """POSTs under way are finished and saved, and nothing more is leased."""
    service.script([{"on": "create", "kind": "stall", "seconds": 2}])
    provided = narrow(provided)
    with provided.started("worker", "--processes", "2") as running:
        ready(running)
        for number in range(6):
            enqueue(provided, number)
        until(lambda: len(service.posts) >= 2)
        running.process.kill()
        running.process.wait()
        until(lambda: not any(lives(pid) for _, pid in pids(running)))
    assert running.err.read_text().count("the parent is gone") == 2
    phases = [each["phase"] for each in provided.run("operations", "list", "--json").objects]
    assert set(phases) == {"accepted", "prepared"}
    assert phases.count("accepted") == len(service.posts) < 6
    assert (
        one(database, "select count(*) from coatcheck.outbox where leased_by is not null and visible_at > now()") == 0
    )


def test_an_interrupt_from_a_terminal_is_counted_once_and_sigterm_however_often_only_drains(
    provided: Terminal, service: ThreadedService
) -> None:
    """A terminal interrupts the parent and its processes all at once."""
    service.script([{"on": "create", "kind": "stall", "seconds": 1}])
    with in_a_group_of_its_own(provided, "worker", "--processes", "2") as running:
        ready(running)
        operation_id = enqueue(provided, 1)
        until(lambda: service.posts)
        os.killpg(running.process.pid, signal.SIGINT)
        running.said("draining")
        for _ in range(2):
            os.killpg(running.process.pid, signal.SIGTERM)
        assert running.ended().code == 0
    shown = provided.run("operations", "show", operation_id, "--json").object
    assert (shown["phase"], len(service.posts)) == ("accepted", 1)


def test_the_second_interrupt_stops_all_with_130_and_leaves_doubt(provided: Terminal, service: ThreadedService) -> None:
    service.script([{"on": "create", "kind": "stall"}])
    with in_a_group_of_its_own(provided, "worker", "--processes", "2") as running:
        ready(running)
        operation_id = enqueue(provided, 1)
        until(lambda: service.posts)
        os.killpg(running.process.pid, signal.SIGINT)
        running.said("draining")
        os.killpg(running.process.pid, signal.SIGINT)
        assert running.ended().code == 130
    shown = provided.run("operations", "show", operation_id, "--json").object
    assert (shown["phase"] in {"uncertain", "dispatching"}, len(shown["dispatches"])) == (True, 1)
    assert not any(lives(pid) for _, pid in pids(running))


@pytest.mark.parametrize(("order", "code"), [(b"", 0), (b"s", 130)], ids=["the parent is gone", "stop"])
def test_what_a_process_is_told_before_it_works_ends_it_before_it_works(
    provided: Terminal, service: ThreadedService, order: bytes, code: int
) -> None:
    enqueue(provided, 1)
    ended = subprocess.run(
        [*COATCHECK, "worker", "--number", "1"],
        input=order,
        capture_output=True,
        env=dict(provided.environ),
        check=False,
    )
    assert (ended.returncode, ended.stdout, service.posts) == (code, b"", ())
    assert b"ready" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--processes", "0"), "--processes: expected 1 to 256, got 0"),
        (("--processes", "257"), "--processes: expected 1 to 256, got 257"),
        (("--processes", "2", "--health-port", "65535"), "--health-port: expected 0 to 65534 for 2 processes"),
    ],
)
def test_a_number_that_cannot_be_is_refused(provided: Terminal, words: tuple[str, ...], told: str) -> None:
    ended = provided.run("worker", *words, "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert told in ended.error["message"]


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, None], ids=["no pipe", "none at all"])
def test_a_number_without_a_parent_is_refused(provided: Terminal, stdin: int | None) -> None:
    words = [*COATCHECK, "worker", "--number", "1", "--json"]
    shell = ["sh", "-c", 'exec "$@" <&-', "sh"] if stdin is None else []
    ended = subprocess.run([*shell, *words], stdin=stdin, capture_output=True, env=dict(provided.environ), check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert "got a stdin that is no pipe" in json.loads(ended.stderr)["message"]


def test_a_number_for_several_processes_is_refused(provided: Terminal) -> None:
    """Its pipe would be heard by nobody."""
    words = [*COATCHECK, "worker", "--number", "1", "--processes", "2", "--json"]
    ended = subprocess.run(words, input=b"", capture_output=True, env=dict(provided.environ), check=False)
    assert ended.returncode == 2
    assert "got --processes 2" in json.loads(ended.stderr)["message"]


def test_a_role_that_may_never_have_so_many_connections_is_refused_with_the_sum(
    provided: Terminal, database: postgres.Database
) -> None:
    role = f"few_{database.name}"
    with database.connect() as connection:
        connection.execute(f"create role {role} login connection limit 10 in role coatcheck_worker".encode())
    try:
        few = database.url.replace("postgres@", f"{role}@", 1)
        ended = provided.run("worker", "--processes", "2", "--json", COATCHECK_DATABASE_URL=few)
        assert (ended.code, ended.error["code"]) == (2, "refused")
        assert "14 connections to PostgreSQL (2 processes, 7 each), got 10 at most" in ended.error["message"]
        assert f"connection limit 10 of the role {role}" in ended.error["message"]
        assert "--processes to 1" in ended.error["next"]
        assert provided.run("worker", "--until-idle", COATCHECK_DATABASE_URL=few).code == 0
    finally:
        with database.connect() as connection:
            connection.execute(f"drop role {role}".encode())


def free_ports() -> int:
    """The first of two that follow each other and that nobody has."""
    for _ in count():
        with socket.create_server(("127.0.0.1", 0)) as first:
            port: int = first.getsockname()[1]
            if is_free(port + 1):
                return port
    raise AssertionError


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except (OSError, OverflowError):
        return False
    return True


def name_at(port: int) -> str:
    """Who answers there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        found = re.search(r'coatcheck_worker_info\{incarnation="([^"]+)"', reply.read().decode())
    assert found is not None
    return found[1]
