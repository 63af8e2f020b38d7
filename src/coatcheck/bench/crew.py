"""Whole lives with several worker processes of one command: how many a second they bring to their end together, and what connections they hold.

All of them are ready before anything is enqueued, and the queue fills with one commit, which wakes them all: otherwise whoever starts first has it
to himself. Afterwards the two books are compared as those of one worker are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.app.connections import check_room, connections_of
from coatcheck.bench.books import Books
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.lifecycle import finished, verified, warm
from coatcheck.bench.service import Service
from coatcheck.bench.usage import Usage
from coatcheck.config import load_settings
from coatcheck.errors import Failed, Refused
from coatcheck.store.blocking import connected, look_for_room

PROCESS_COUNTS = (1, 2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """What one full queue cost so many processes. Their sessions were counted at the end, when none of those that they opened is closed yet."""

    per_s: float
    session_count: int
    usage: Usage


def measure(ground: Ground) -> Sequence[Figure]:
    """Operations per second of one tenant, and connections to PostgreSQL."""
    figures: list[Figure] = []
    with ground.books() as books:
        _warm(ground, books)
        for process_count in PROCESS_COUNTS:
            with ground.serving() as service:
                figures += figures_of(ground, books, service, process_count)
    return figures


def _warm(ground: Ground, books: Books) -> None:
    books.clear()
    with ground.serving() as service, ground.working(service) as hand:
        warm(ground, books)
        hand.drain()


def figures_of(ground: Ground, books: Books, service: Service, process_count: int) -> Sequence[Figure]:
    """Both lines of so many processes; without a value where the server has no room for them."""
    each_count = reckoned(ground, service)
    words = f"{process_count} process" if process_count == 1 else f"{process_count} processes"
    lives, connections = f"lifecycles, {words}, one tenant", f"PostgreSQL connections, {words}"
    missing = _missing_room(ground, process_count, each_count)
    if missing is not None:
        return [
            Figure(name=lives, value=None, unit="1/s", limited_by=missing),
            Figure(name=connections, value=None, unit="connections", limited_by=missing),
        ]
    found = lived(ground, books, service, process_count)
    most = f"counted; at most {process_count * each_count}, {each_count} for each process"
    return [
        Figure(name=lives, value=found.per_s, unit="1/s", limited_by=found.usage.limit),
        Figure(name=connections, value=found.session_count, unit="connections", limited_by=most),
    ]


def reckoned(ground: Ground, service: Service) -> int:
    """How many connections `coatcheck worker` looks for at its start, for each process."""
    return connections_of(load_settings(ground.environ(service), ground.home))


def _missing_room(ground: Ground, process_count: int, each_count: int) -> str | None:
    """Why so many processes would not start, or None. Of a pooler's room nobody can tell."""
    with connected(ground.url, "bench") as connection:
        room, is_pooled = look_for_room(connection)
    try:
        if not is_pooled:
            check_room(room, processes=process_count, each_count=each_count)
    except Refused as refused:
        return refused.message
    return None


def lived(ground: Ground, books: Books, service: Service, process_count: int) -> Lived:
    """Let so many processes empty a queue that fills at once. Raises `Failed` where the books disagree or a process was started anew."""
    count = ground.scale.operations
    books.clear()
    with ground.working_together(service, process_count) as hand:
        pids = hand.pids
        with books.together():
            books.enqueue("life", count, tenants=1)
        watch = ground.watch(books, worker=pids, service=service.pid)
        finished(ground, books, count)
        usage = watch.usage()
        session_count = books.session_count()
        if hand.pids != pids:
            raise Failed(f"expected {process_count} worker processes that stay, got a new one", next=f"read {hand.log}")
        hand.drain()
    all_lived = verified(books, count)
    service.check_posts(count)
    return Lived(per_s=count / (all_lived.seconds or usage.seconds), session_count=session_count, usage=usage)
