"""What one operation costs PostgreSQL, from enqueue to delivered: counted by the server and by the worker, never derived from times.

Counters are read when the worker's sessions have ended, for only then are they complete.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from coatcheck.bench import acceptance, lifecycle, witness
from coatcheck.bench.books import TENANTS, Books, Counters
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.hands import WORKER
from coatcheck.bench.idle import settled
from coatcheck.bench.service import Service

_PAGE_BYTES = 8_192
_LEAST = 0.0005
"""What is rarer than once in so many operations is not shown."""
_COUNTED = "counted; batches grow with the load"
_UNTIL_IDLE = (*WORKER, "--until-idle")
_ALL_BUT_DELIVER = "dispatch,observe,reconcile"
_Found = TypeVar("_Found")
_LOADS = (1.0, 50.0)
"""Operations a second that are offered to a worker which could do more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What the server had counted, and how many looks the service."""

    counters: Counters
    look_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    """What one full queue cost: with its enqueues, without them, and in statements by name."""

    whole: Counters
    worked: Counters
    statements: Mapping[str, int]


def measure(ground: Ground) -> Sequence[Figure]:
    """Commits, rows, log and statements of one operation, a full queue beforehand: of several tenants, and of one alone."""
    count = ground.scale.operations
    with ground.books() as books:
        several = _lived(ground, books, TENANTS)
        alone, (final, look_count) = _bare(ground, books, lambda: (_lived(ground, books, 1), _final(ground, books)))
    figures = [
        _figure(
            f"commits of an operation, enqueue excluded, full queue, {TENANTS} tenants",
            several.worked.transaction_count / count,
            "commits",
        ),
        _figure(
            "commits of an operation, enqueue excluded, full queue, one tenant",
            alone.worked.transaction_count / count,
            "commits",
        ),
        _figure(f"rows written for an operation, {TENANTS} tenants", several.whole.row_count / count, "rows"),
        *_log(ground, several.whole, alone.whole, final),
        _figure("looks at a render until its end, which that log is of", look_count / count, "looks", "counted"),
        _figure(
            f"statements of an operation, {TENANTS} tenants", sum(several.statements.values()) / count, "statements"
        ),
        _figure("statements of an operation, one tenant", sum(alone.statements.values()) / count, "statements"),
        *(_offered(ground, rate) for rate in _LOADS),
    ]
    for name, number in sorted(several.statements.items(), key=lambda each: -each[1]):
        if number / count >= _LEAST:
            figures.append(_figure(f"statements: {name}, {TENANTS} tenants", number / count, "statements"))
    return figures


def _figure(name: str, value: float, unit: str, limited_by: str = _COUNTED) -> Figure:
    return Figure(name=name, value=value, unit=unit, limited_by=limited_by)


def _lived(ground: Ground, books: Books, tenants: int) -> _Life:
    """What the server counted of the enqueues and of the work, and which statements the worker ran."""
    notes = ground.home / "notes.json"
    before, between, after = _counted(ground, books, tenants, witness.command(notes, until_idle=True))
    statements = json.loads(notes.read_text())["statements"]
    return _Life(
        whole=_less(after.counters, before.counters),
        worked=_less(after.counters, between.counters),
        statements=statements,
    )


def _final(ground: Ground, books: Books) -> tuple[Counters, int]:
    """What was counted of one tenant's full queue until each render's end was saved, and how often was looked; a second worker delivers."""
    before, _, after, _ = _counted(ground, books, 1, (*_UNTIL_IDLE, "--roles", _ALL_BUT_DELIVER), _UNTIL_IDLE)
    return _less(after.counters, before.counters), after.look_count


def _counted(ground: Ground, books: Books, tenants: int, *commands: Sequence[str]) -> Sequence[_Reading]:
    """What had been counted before a full queue was enqueued, after that, and after each of the workers, which come one after the other."""
    count = ground.scale.operations
    books.clear()
    with ground.serving() as service:
        found = [_read(ground, service)]
        with ground.books() as enqueuing:
            enqueuing.enqueue("cost", count, tenants=tenants)
        found.append(_read(ground, service))
        for command in commands:
            with ground.working(service, command=command) as hand:
                hand.end()
            found.append(_read(ground, service))
        lifecycle.verified(books, count)
        service.check_posts(count)
    books.clear()
    return found


def _read(ground: Ground, service: Service) -> _Reading:
    return _Reading(counters=settled(ground), look_count=service.looks()["count"])


def _offered(ground: Ground, rate: float) -> Figure:
    """The commits of an operation where they come one after the other: each statement of the worker is one, what it asked in vain included."""
    notes = ground.home / "notes.json"
    with ground.books() as books:
        books.clear()
        with ground.serving() as service, ground.working(service, command=witness.command(notes)) as hand:
            count = acceptance.offer(ground, books, rate)
            lifecycle.finished(ground, books, count)
            hand.drain()
            service.check_posts(count)
        books.clear()
    statements = json.loads(notes.read_text())["statements"]
    limited_by = "counted; what it asks while there is nothing is its operations' cost, too"
    return _figure(f"commits of an operation at {rate:.0f}/s", sum(statements.values()) / count, "commits", limited_by)


def _bare(ground: Ground, books: Books, run: Callable[[], _Found]) -> _Found:
    """Run it without images of pages where the server is ours."""
    if ground.server is None:
        return run()
    books.set_images(kept=False)
    try:
        return run()
    finally:
        books.set_images(kept=True)


def _less(after: Counters, before: Counters) -> Counters:
    return Counters(
        transaction_count=after.transaction_count - before.transaction_count,
        row_count=after.row_count - before.row_count,
        wal_bytes=after.wal_bytes - before.wal_bytes,
        image_count=after.image_count - before.image_count,
    )


def _log(ground: Ground, imaged: Counters, bare: Counters, final: Counters) -> Sequence[Figure]:
    """With images of whole pages, which a checkpoint brings about, and without: measured where the server is ours, else estimated."""
    count = ground.scale.operations

    def without_images(name: str, counters: Counters) -> Figure:
        estimated = counters.wal_bytes - counters.image_count * _PAGE_BYTES
        if ground.server is None:
            return _figure(name, estimated / count / 1000, "kB", "estimated at 8 kB for each image of a page")
        return _figure(name, counters.wal_bytes / count / 1000, "kB", "counted with full_page_writes off")

    return [
        _figure(f"log of an operation, with images of pages, {TENANTS} tenants", imaged.wal_bytes / count / 1000, "kB"),
        _figure(
            f"images of pages for an operation, {TENANTS} tenants",
            imaged.image_count / count,
            "images",
            "counted; grows with each checkpoint",
        ),
        without_images("log of an operation, without images, one tenant", bare),
        without_images("log of an operation until its render's end, without images, one tenant", final),
    ]
