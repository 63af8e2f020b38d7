"""What one operation costs PostgreSQL, from enqueue to delivered: counted by the server and by the worker, never derived from times.

Counters are read when the worker's sessions have ended, for only then are they complete.
"""

import json
from collections.abc import Mapping, Sequence

from coatcheck.bench import lifecycle, witness
from coatcheck.bench.books import Books, Counters
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.idle import settled

_PAGE_BYTES = 8_192
_LEAST = 0.0005
"""What is rarer than once in so many operations is not shown."""
_COUNTED = "counted; batches grow with the load"


def measure(ground: Ground) -> Sequence[Figure]:
    """Commits, rows, log and statements of one operation, a full queue beforehand."""
    with ground.books() as books:
        enqueued, worked, statements = _lived(ground, books)
        figures = [
            _figure("commits of an operation, enqueue excluded", worked.transaction_count / _count(ground), "commits"),
            _figure("rows written for an operation", (enqueued.row_count + worked.row_count) / _count(ground), "rows"),
            *_log(ground, books, enqueued, worked),
            _figure("statements of an operation", sum(statements.values()) / _count(ground), "statements"),
        ]
        for purpose, count in sorted(statements.items(), key=lambda each: -each[1]):
            if count / _count(ground) >= _LEAST:
                figures.append(_figure(f"statements: {purpose}", count / _count(ground), "statements"))
    return figures


def _count(ground: Ground) -> int:
    return ground.scale.operations


def _figure(name: str, value: float, unit: str, limited_by: str = _COUNTED) -> Figure:
    return Figure(name=name, value=value, unit=unit, limited_by=limited_by)


def _lived(ground: Ground, books: Books) -> tuple[Counters, Counters, Mapping[str, int]]:
    """What the server counted of the enqueues and of the work, and which statements the worker ran."""
    notes = ground.home / "notes.json"
    command = witness.command(notes, until_idle=True)
    books.clear()
    with ground.serving() as service:
        before = settled(ground)
        with ground.books() as enqueuing:
            enqueuing.enqueue("cost", _count(ground))
        between = settled(ground)
        with ground.working(service, command=command) as hand:
            hand.end()
        after = settled(ground)
        lifecycle.verified(books, _count(ground))
        service.check_posts(_count(ground))
    books.clear()
    return _less(between, before), _less(after, between), json.loads(notes.read_text())["statements"]


def _less(after: Counters, before: Counters) -> Counters:
    return Counters(
        transaction_count=after.transaction_count - before.transaction_count,
        row_count=after.row_count - before.row_count,
        wal_bytes=after.wal_bytes - before.wal_bytes,
        image_count=after.image_count - before.image_count,
    )


def _log(ground: Ground, books: Books, enqueued: Counters, worked: Counters) -> Sequence[Figure]:
    """With images of whole pages, which a checkpoint brings about, and without: measured where the server is ours, else estimated."""
    whole = (enqueued.wal_bytes + worked.wal_bytes) / _count(ground)
    images = (enqueued.image_count + worked.image_count) / _count(ground)
    if ground.server is None:
        bare, how = whole - images * _PAGE_BYTES, "estimated at 8 kB for each image of a page"
    else:
        books.set_images(kept=False)
        try:
            enqueued, worked, _ = _lived(ground, books)
        finally:
            books.set_images(kept=True)
        bare, how = (enqueued.wal_bytes + worked.wal_bytes) / _count(ground), "counted with full_page_writes off"
    return [
        _figure("log of an operation, with images of pages", whole / 1000, "kB"),
        _figure("images of pages for an operation", images, "images", "counted; grows with each checkpoint"),
        _figure("log of an operation, without images", bare / 1000, "kB", how),
    ]
