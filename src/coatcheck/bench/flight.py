"""Renders in flight: how many one worker holds at once, and the memory that each takes, where a look is held open and where it is repeated.

The renders never end. Memory is the worker's own, resident, before and after: with everything loaded that a life needs, and again with all
renders accepted and looked at. A held look needs a place of its own, a render that is asked for now and then none: there the places are the usual.
"""

from collections.abc import Callable, Mapping, Sequence

from coatcheck.bench import lifecycle
from coatcheck.bench.books import Books
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.hands import Hand
from coatcheck.bench.kernel import resident_bytes
from coatcheck.bench.patience import until
from coatcheck.bench.service import Service

_LOOKS_PER_S = 200
_FLOOR_S = 2, 20
"""The least time between two looks grows with the renders, so that what is measured is waiting and not looking."""
_ENDLESS = ',"sim":{"processing_s":1000000,"queued_s":0}'
_WINDOW_S = 3_600
"""Longer than the measurement: all looks are held at once, none is between two windows."""
_PER_RENDER_S = 0.3
_AT_LEAST_S = 120.0
_SPARE = 100


def held(ground: Ground) -> Sequence[Figure]:
    """Looks are held open by the service."""

    def are_held(service: Service, _: Books) -> bool:
        held_count: int = service.looks()["held"]
        return held_count >= ground.scale.renders

    # a window as long as that makes the lease of a look as long, too
    places = str(ground.scale.renders + _SPARE)
    return _flown(ground, "held", are_held, WAIT_S=str(_WINDOW_S), CONCURRENCY__OBSERVE=places)


def polled(ground: Ground) -> Sequence[Figure]:
    """Looks are answered at once and repeated at the pace that an age deserves: the service has no long poll."""

    def were_looked_at(service: Service, _: Books) -> bool:
        return are_looked_at(service, ground.scale.renders)

    return _flown(ground, "polled", were_looked_at, **polling(ground.scale.renders))


def polling(count: int) -> Mapping[str, str]:
    """What a worker is told of a service that has no long poll, for so many renders."""
    shortest_s, longest_s = _FLOOR_S
    return {"WAIT_PARAM": "", "LOOK_MIN_S": f"{min(longest_s, max(shortest_s, count / _LOOKS_PER_S)):g}"}


def are_looked_at(service: Service, count: int) -> bool:
    """Whether so many renders were, besides those that lived to warm up."""
    jobs: int = service.looks()["jobs"]
    return jobs >= lifecycle.WARM + count


def _flown(
    ground: Ground, manner: str, are_flying: Callable[[Service, Books], bool], **settings: str
) -> Sequence[Figure]:
    count = ground.scale.renders
    with ground.books() as books, ground.serving(wait_max_s=_WINDOW_S) as service:
        books.clear()
        with ground.working(service, **settings) as hand:
            lifecycle.warm(ground, books)
            before = resident_bytes(hand.pid)
            accepted(ground, books, count)
            looked_at(ground, hand, lambda: are_flying(service, books))
            after = resident_bytes(hand.pid)
            watch = ground.watch(books, worker=hand.pids, service=[service.pid])
            ground.seams.pause(ground.scale.seconds)
            limit = watch.usage().limit
            flying = books.progress().observed_count
        books.clear()
    each = None if before is None or after is None else (after - before) / 1000 / count
    asked = f"as many as were asked for; meanwhile {limit}"
    return [
        Figure(name=f"renders {manner} at once, one worker", value=flying, unit="renders", limited_by=asked),
        Figure(
            name=f"memory of each render {manner}",
            value=each,
            unit="kB",
            limited_by=f"resident memory of the worker, from {_megabytes(before)} to {_megabytes(after)}",
        ),
    ]


def accepted(ground: Ground, books: Books, count: int) -> None:
    """Have so many more operations accepted."""
    books.enqueue("endless", count, more=_ENDLESS, tenants=1)
    until(
        lambda: books.progress().observed_count >= count,
        seams=ground.seams,
        what=f"{count} accepted renders",
        within_s=patience_s(count),
        every_s=0.5,
    )


def looked_at(ground: Ground, hand: Hand, are_flying: Callable[[], bool]) -> None:
    """Wait until all of them are looked at. A long ledger is not asked for often."""

    def seen() -> bool:
        hand.check()
        return are_flying()

    until(
        seen,
        seams=ground.seams,
        what="a look at each of the renders",
        within_s=patience_s(ground.scale.renders),
        every_s=2.0,
    )


def patience_s(count: int) -> float:
    """How long so many renders are waited for."""
    return _AT_LEAST_S + count * _PER_RENDER_S


def _megabytes(size: int | None) -> str:
    return "?" if size is None else f"{size / 1e6:.1f} MB"
