"""What one of several processes is given and how it hears its orders: its command, its pipe, and an order that comes before there is a worker."""

import asyncio
import inspect
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

import postgres
from cli.terminal import Terminal
from coatcheck.app.workplace import worker_of
from coatcheck.cli.course import Course
from coatcheck.cli.lifeline import Lifeline, Order, heard
from coatcheck.cli.obeying import Parent
from coatcheck.cli.program import app
from coatcheck.cli.signals import ORDERS
from coatcheck.cli.worker import _check_database, _command, worker
from coatcheck.config import load_settings
from coatcheck.core.actions import Action
from coatcheck.seams import Seams
from waiting import until_async

MORE_THAN_A_PIPE_HOLDS = 1 << 17
CONNECTIONS = 7
ROLES = [Action.OBSERVE, Action.DELIVER]


def understood(words: list[str]) -> dict[str, object]:
    """What a process makes of the command that its parent started it with."""
    command, bound, _ = app().parse_args(words[words.index("worker") :], exit_on_error=False, print_error=False)
    assert command is worker
    assert not bound.args
    return dict(bound.kwargs)


def test_a_process_is_told_all_that_its_parent_was_told() -> None:
    """Everything but how many there are; its port is its own."""
    course = Course(roles=ROLES, until_idle=True, health_host="::1", health_port=9464, number=None)
    told = understood(_command(course, 3, "debug", as_json=True))
    assert told == {
        "number": 3,
        "roles": "observe,deliver",
        "until_idle": True,
        "log_level": "debug",
        "health_host": "::1",
        "health_port": 9466,
        "as_json": True,
    }
    assert set(inspect.signature(worker).parameters) - set(told) == {"processes"}


def test_a_process_is_told_nothing_that_its_parent_was_not_told() -> None:
    course = Course(roles=ROLES, until_idle=False, health_host="::1", health_port=None, number=None)
    told = understood(_command(course, 1, "info", as_json=False))
    assert told == {"number": 1, "roles": "observe,deliver", "log_level": "info"}


def test_of_a_free_port_each_takes_its_own() -> None:
    course = Course(roles=ROLES, until_idle=False, health_host="::1", health_port=0, number=None)
    assert [understood(_command(course, number, "info", as_json=False))["health_port"] for number in (1, 2)] == [0, 0]


@pytest.mark.parametrize(("number", "warnings"), [(None, 1), (2, 0)], ids=["parent", "process"])
def test_the_room_for_connections_is_the_parents_to_look_at(
    database: postgres.Database, capsys: pytest.CaptureFixture[str], number: int | None, warnings: int
) -> None:
    """A process that is replaced finds its siblings connected, and would warn of them each time."""
    role = f"full_{database.name}"
    with database.connect() as connection:
        create = f"create role {role} login connection limit {CONNECTIONS} in role coatcheck_worker"
        connection.execute(create.encode())
    url = database.url.replace("postgres@", f"{role}@", 1)
    course = Course(roles=ROLES, until_idle=False, health_host="::1", health_port=None, number=number)
    try:
        with psycopg.connect(url):
            _check_database(url, load_settings({"COATCHECK_DATABASE_URL": url}), course, 1)
    finally:
        with database.connect() as connection:
            connection.execute(f"drop role {role}".encode())
    assert capsys.readouterr().err.count("warning: 7 connections to PostgreSQL are needed and 6 are free") == warnings


@pytest.mark.timeout(30)
def test_an_order_never_waits_for_a_process_that_does_not_listen() -> None:
    """A full pipe has told it enough: what was put in is heard, and its end as well."""
    line = Lifeline()
    for _ in range(MORE_THAN_A_PIPE_HOLDS):
        line.give(Order.DRAIN)
    assert heard(line.end.fileno()) is Order.DRAIN
    line.close()
    while (order := heard(line.end.fileno())) is not None:
        assert order is Order.DRAIN
    line.begun()


@contextmanager
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lifeline]:
    """The parent's end of a pipe that is this process's stdin; afterwards signals do what they did."""
    line = Lifeline()
    before = {each: signal.getsignal(each) for each in ORDERS}
    monkeypatch.setattr("sys.stdin", line.end)
    try:
        yield line
    finally:
        for each, disposition in before.items():
            signal.signal(each, disposition)
        line.begun()
        with suppress(OSError):
            line.close()


@pytest.mark.parametrize("orders", [[Order.DRAIN], [Order.STOP], [Order.STOP, Order.DRAIN]], ids=str)
def test_an_early_order_that_did_not_end_the_course_is_told_to_the_worker(
    provided: Terminal, monkeypatch: pytest.MonkeyPatch, orders: list[Order]
) -> None:
    """Whatever it was that took the cancellation for its own. To stop stays to stop, though to drain comes behind it."""
    settings = load_settings(provided.environ)
    assert settings.database_url is not None
    url = settings.database_url

    async def course() -> tuple[bool, bool]:
        async with worker_of(settings, url, seams=Seams.real()) as (running, _):
            parent = Parent()
            for order in orders:
                line.give(order)
                with suppress(asyncio.CancelledError):
                    await until_async(lambda: parent.early is not None)
                    await asyncio.sleep(0)
            before = running.is_draining
            parent.directs(running)
            await asyncio.wait_for(running.run(), 30)
            asyncio.get_running_loop().remove_reader(line.end.fileno())
            return before, running.is_stopped

    with listening(monkeypatch) as line:
        assert asyncio.run(course()) == (False, Order.STOP in orders)


def test_a_lifeline_that_is_closed_is_told_from_one_that_is_silent() -> None:
    line = Lifeline()
    os.set_blocking(line.end.fileno(), False)
    with pytest.raises(BlockingIOError):
        heard(line.end.fileno())
    line.close()
    assert heard(line.end.fileno()) is None
    line.begun()
