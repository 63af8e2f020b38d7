"""The measurement `processes`: whole lives with several workers of one command, how many a second they bring to their end, and their connections.

All of them are ready before anything is enqueued, and the queue fills with one commit, which wakes them all: otherwise whoever starts first has it
to himself. Afterwards the two books are compared as those of one worker are. What the kernel tells of processes is in `kernel`.
"""

from collections.abc import Sequence

from coatcheck.app.connections import check_room, connections_of
from coatcheck.bench.books import Books
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.lifecycle import Lived, emptied, warm
from coatcheck.bench.service import Service
from coatcheck.config import load_settings
from coatcheck.errors import Refused
from coatcheck.store.blocking import connected, look_for_room

PROCESS_COUNTS = (1, 2, 4)


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
    """Both lines of so many workers; without a value where the server has no room for them."""
    each_count = reckoned(ground, service)
    missing, is_pooled = _missing_room(ground, process_count, each_count)
    if missing is not None:
        return [lives(process_count, None, missing), connections(process_count, None, missing)]
    found = lived(ground, books, service, process_count)
    counted = f"counted; at most {process_count * each_count}, {each_count} for each process"
    return [
        lives(process_count, found.per_s, found.usage.limit),
        connections(process_count, found.session_count, counted, is_pooled=is_pooled),
    ]


def lives(process_count: int, per_s: float | None, limited_by: str) -> Figure:
    """The first line."""
    return Figure(
        name=f"lifecycles, {_words(process_count)}, one tenant", value=per_s, unit="1/s", limited_by=limited_by
    )


def connections(process_count: int, count: int | None, limited_by: str, *, is_pooled: bool = False) -> Figure:
    """The second line, without a value where the sessions that were counted are a pooler's."""
    if is_pooled:
        count, limited_by = None, "not measured: a pooler stands before the server, whose sessions are the pooler's"
    return Figure(
        name=f"PostgreSQL connections, {_words(process_count)}", value=count, unit="connections", limited_by=limited_by
    )


def _words(process_count: int) -> str:
    return f"{process_count} process" if process_count == 1 else f"{process_count} processes"


def reckoned(ground: Ground, service: Service) -> int:
    """How many connections `coatcheck worker` looks for at its start, for each process."""
    return connections_of(load_settings(ground.environ(service), ground.home))


def _missing_room(ground: Ground, process_count: int, each_count: int) -> tuple[str | None, bool]:
    """Why so many workers would not start, or would want for connections; and whether there is a pooler, of whose room nobody can tell."""
    with connected(ground.url, "bench") as connection:
        room, is_pooled = look_for_room(connection)
    if is_pooled:
        return None, True
    try:
        return check_room(room, processes=process_count, each_count=each_count), False
    except Refused as refused:
        return refused.message, False


def lived(ground: Ground, books: Books, service: Service, process_count: int) -> Lived:
    """Let so many workers empty a queue that fills at once.

    Raises `Failed` where the books disagree, or a worker did not stay, which nobody sees without /proc.
    """
    count = ground.scale.operations
    books.clear()
    with ground.working_together(service, process_count) as hand:
        with books.together():
            books.enqueue("life", count, tenants=1)
            # before the commit, which wakes them
            watch = ground.watch(books, worker=hand.pids, service=[service.pid])
        found = emptied(ground, books, hand, watch)
    service.check_posts(count)
    return found
