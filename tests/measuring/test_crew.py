"""Several workers of one command under measure: each is seen at work, and the connections are theirs, no more than a worker reckons with at its start."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import postgres
from coatcheck.app.connections import LINES
from coatcheck.bench import QUICK, books, crew, ground, kernel
from coatcheck.bench.ground import Ground
from coatcheck.bench.lifecycle import finished
from coatcheck.errors import Failed
from coatcheck.seams import Seams
from measuring.stopping import stopped
from waiting import until

OPERATIONS = 60
ALWAYS = 3
"""Connections also of a worker with nothing to do: leases and aside, opened before it is ready, and one that listens, opened beside that."""
ON_DEMAND = 1
"""Reads: opened where an operation has to be loaded anew, which in an undisturbed run it may never have to."""


@pytest.fixture
def place(database: postgres.Database, tmp_path: Path) -> Iterator[Ground]:
    scale = replace(QUICK, operations=OPERATIONS)
    with ground.opened(
        tmp_path / "bench", url=database.url, scale=scale, seams=Seams.real(), telling=lambda _: None
    ) as opened:
        yield opened


def session(database: postgres.Database, name: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(make_conninfo(database.url, application_name=name))


def lived(place: Ground, process_count: int) -> tuple[int, int]:
    """The connections that were counted, and how many a worker reckons with for each process."""
    with place.books() as reader, place.serving() as service:
        found = crew.lived(place, reader, service, process_count)
        assert len(found.usage.parties["worker"]) == process_count
        assert found.per_s > 0
        return found.session_count, crew.reckoned(place, service)


def fits(session_count: int, process_count: int, each_count: int) -> bool:
    """One process at least did everything, and none has more than was reckoned with."""
    least = each_count - ON_DEMAND + ALWAYS * (process_count - 1)
    return least <= session_count <= process_count * each_count


@pytest.mark.parametrize("process_count", [1, 2])
def test_processes_hold_what_a_worker_reckons_with_at_its_start(process_count: int, place: Ground) -> None:
    session_count, each_count = lived(place, process_count)
    assert each_count == LINES + 1
    assert fits(session_count, process_count, each_count), session_count


def test_one_connection_too_many_is_seen(place: Ground, database: postgres.Database) -> None:
    with ExitStack() as stack:
        for _ in range(ON_DEMAND + 1):
            stack.enter_context(session(database, "coatcheck marks"))
        session_count, each_count = lived(place, 1)
    assert not fits(session_count, 1, each_count), session_count


def test_sessions_of_workers_are_counted_and_no_others(database: postgres.Database, fresh: postgres.Database) -> None:
    with books.opened(database.url) as reader, ExitStack() as stack:
        for name in ("coatcheck marks", "coatcheck marks", "coatcheck listener", "coatcheck bench", "psql"):
            stack.enter_context(session(database, name))
        stack.enter_context(session(fresh, "coatcheck marks"))
        assert reader.session_count() == 3


def test_all_workers_of_a_command_are_known_by_name_and_number(place: Ground) -> None:
    with place.serving() as service, place.working_together(service, 2) as hand:
        assert sorted(name.rpartition(".")[2] for name in hand.incarnations) == ["1", "2"]
        assert len(set(hand.pids)) == 2
        assert all(kernel.parent(pid) == hand.pid for pid in hand.pids)
        hand.drain()
    assert place.incarnations == list(hand.incarnations)


def test_a_worker_alone_is_its_own_process(place: Ground) -> None:
    with place.serving() as service, place.working(service) as hand:
        assert hand.pids == [hand.pid]
        assert [hand.incarnation] == hand.incarnations
        hand.drain()


def test_a_worker_that_was_started_anew_spoils_the_figure(place: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two is killed when its work is done, so that the books agree, and another stands in its place."""

    def and_killed(place: Ground, reader: books.Books, count: int) -> None:
        finished(place, reader, count)
        (parent,) = {kernel.parent(pid) for pid in workers()}
        assert parent is not None
        before = kernel.children(parent)
        os.kill(before[0], signal.SIGKILL)

        def is_replaced() -> bool:
            now = kernel.children(parent)
            return len(now) == len(before) and now != before

        until(is_replaced)

    monkeypatch.setattr("coatcheck.bench.lifecycle.finished", and_killed)
    with (
        place.books() as reader,
        place.serving() as service,
        pytest.raises(Failed, match="2 workers that stay"),
    ):
        crew.lived(place, reader, service, 2)


def workers() -> list[int]:
    """Workers with a number whose parent this process began."""
    return [grandchild for child in kernel.children(os.getpid()) for grandchild in kernel.children(child)]


def test_where_there_is_no_room_for_their_connections_the_line_says_so(place: Ground) -> None:
    """The server of the tests admits 200."""
    with place.books() as reader, place.serving() as service:
        lives, connections = crew.figures_of(place, reader, service, 100)
    assert (lives.value, connections.value) == (None, None)
    assert connections.name == "PostgreSQL connections, 100 processes"
    assert lives.limited_by == connections.limited_by
    assert lives.limited_by.startswith(
        "expected room for 700 connections to PostgreSQL (100 processes, 7 each), got 200"
    )


def test_where_others_have_taken_the_room_the_line_says_so(place: Ground, database: postgres.Database) -> None:
    """Of 200 there may be, 196 are wanted, and more than four are taken."""
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(session(database, "psql"))
        reader, service = stack.enter_context(place.books()), stack.enter_context(place.serving())
        lives, connections = crew.figures_of(place, reader, service, 28)
    assert (lives.value, connections.value) == (None, None)
    assert lives.limited_by == connections.limited_by
    assert lives.limited_by.startswith("196 connections to PostgreSQL (28 processes, 7 each) are needed and ")


def test_sessions_of_a_pooler_are_not_taken_for_the_workers() -> None:
    assert crew.connections(2, 9, "counted").value == 9
    pooled = crew.connections(2, 9, "counted", is_pooled=True)
    assert pooled.value is None
    assert "a pooler stands before the server" in pooled.limited_by


@pytest.mark.parametrize("process_count", [1, 2])
def test_who_is_killed_is_dead_at_once_with_all_workers(process_count: int, place: Ground) -> None:
    """Workers that are stopped cannot drain."""
    with place.serving() as service, place.working_together(service, process_count) as hand, stopped(hand.pids):
        hand.kill()
        assert all(kernel.is_dead(pid) for pid in (hand.pid, *hand.pids))
