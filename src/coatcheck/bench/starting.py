"""How soon an enqueued operation is under way: from its commit, as its caller sees it, to the first bytes of its POST, as the service does."""

from collections.abc import Sequence
from datetime import datetime

from coatcheck.bench import lifecycle
from coatcheck.bench.books import Books
from coatcheck.bench.figure import Figure, quantile
from coatcheck.bench.ground import Ground

RATE = 50.0
"""Operations a second, one in each transaction."""


def measure(ground: Ground) -> Sequence[Figure]:
    """Milliseconds, the median and the 99th percentile."""
    with ground.books() as books, ground.serving() as service:
        books.clear()
        with ground.working(service) as hand:
            lifecycle.warm(ground, books)
            watch = ground.watch(books, worker=hand.pids, service=[service.pid])
            committed_at = _committed(ground, books)
            limit = watch.usage().limit
            lifecycle.finished(ground, books, len(committed_at))
            hand.drain()
        arrived_at = {post["body_sha256"]: datetime.fromisoformat(post["at"]).timestamp() for post in service.posts()}
    taken = [(arrived_at[digest] - at) * 1000 for digest, at in committed_at.items()]
    name = f"enqueue to POST begun, {{}}, at {RATE:g}/s"
    return [
        Figure(name=name.format("p50"), value=quantile(taken, 0.5), unit="ms", limited_by=limit),
        Figure(name=name.format("p99"), value=quantile(taken, 0.99), unit="ms", limited_by=limit),
    ]


def _committed(ground: Ground, books: Books) -> dict[str, float]:
    """Enqueue one after the other at the rate; when each commit was answered, by the specification's hash."""
    clock, found = ground.seams.clock, dict[str, float]()
    began = clock.boottime()
    for number in range(int(RATE * ground.scale.seconds)):
        ground.seams.pause(max(0.0, began + number / RATE - clock.boottime()))
        (asked,) = books.enqueue("start", 1, first=number + 1)
        found[asked.specification_hash] = clock.now().timestamp()
    return found
