"""A crash of PostgreSQL in the middle of the work: how long it is away, and how soon after its return something is saved again.

The crash is an immediate stop: nothing is written at the end, so the start recovers from the log.
"""

from collections.abc import Sequence

from coatcheck.bench import lifecycle
from coatcheck.bench.books import Books
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.patience import until
from coatcheck.devdb import DevPostgres

_WITHIN_S = 120.0
_EVERY_S = 0.01


def measure(ground: Ground) -> Sequence[Figure]:
    """Seconds and milliseconds."""
    if ground.server is None:
        why = "not measured: the server is not ours to stop"
        return [Figure(name="first save after a crash of PostgreSQL", value=None, unit="ms", limited_by=why)]
    with ground.serving() as service, ground.working(service) as hand:
        with ground.books() as books:
            books.clear()
            count = ground.scale.operations
            books.enqueue("crash", count)
            _until(ground, books, count // 10)
        away_s = _crashed(ground, ground.server)
        with ground.books() as books:
            returned_at, ended = ground.seams.clock.boottime(), books.ended_count()
            watch = ground.watch(books, worker=hand.pids, service=[service.pid])
            _until(ground, books, ended + 1)
            first_ms = (ground.seams.clock.boottime() - returned_at) * 1000
            limit = watch.usage().limit
            lifecycle.finished(ground, books, count)
            hand.drain()
            lifecycle.verified(books, count)
            service.check_posts(count)
            books.clear()
    return [
        Figure(
            name="PostgreSQL away in a crash",
            value=away_s,
            unit="s",
            limited_by="PostgreSQL's own stop, recovery and start",
        ),
        Figure(
            name="first save after its return",
            value=first_ms,
            unit="ms",
            limited_by=f"pauses between tries to connect; meanwhile {limit}",
        ),
    ]


def _until(ground: Ground, books: Books, ended: int) -> None:
    """Wait until so many ends of POSTs are saved."""
    until(
        lambda: books.ended_count() >= ended,
        seams=ground.seams,
        what="saved ends of POSTs",
        within_s=_WITHIN_S,
        every_s=_EVERY_S,
    )


def _crashed(ground: Ground, server: DevPostgres) -> float:
    began = ground.seams.clock.boottime()
    server.restart("immediate")
    return ground.seams.clock.boottime() - began
