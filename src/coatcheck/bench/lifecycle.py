"""Whole lives, from a full queue to stored outputs: how many a second one worker brings to their end.

The service's ledger is compared with the rows at the end: a POST too many, or an operation that is not delivered, and there is no figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.bench.books import TENANTS, Books, Lifecycles
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.hands import Hand
from coatcheck.bench.patience import until
from coatcheck.bench.usage import Usage, Watch
from coatcheck.errors import Failed

_PER_OPERATION_S = 0.2
_AT_LEAST_S = 60.0
WARM = 50
"""Operations that live before anything is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """What one full queue cost. The workers' sessions were counted at the end, when none of those that they opened is closed yet."""

    per_s: float
    session_count: int
    usage: Usage


def measure(ground: Ground) -> Sequence[Figure]:
    """Operations per second, of one tenant alone and of several, who take turns."""
    alone, several = lived(ground, tenants=1), throughput(ground)
    return [
        Figure(name="lifecycles, one worker, one tenant", value=alone.per_s, unit="1/s", limited_by=alone.usage.limit),
        Figure(
            name=f"lifecycles, one worker, {TENANTS} tenants",
            value=several.per_s,
            unit="1/s",
            limited_by=several.usage.limit,
        ),
    ]


def throughput(ground: Ground) -> Lived:
    """What a worker brings to an end of several tenants; the ground remembers it."""
    several = lived(ground, tenants=TENANTS)
    ground.throughput = several.per_s
    return several


def lived(ground: Ground, *, tenants: int) -> Lived:
    """Fill the queue, then let one worker empty it."""
    count = ground.scale.operations
    with ground.books() as books, ground.serving() as service:
        books.clear()
        with ground.working(service) as hand:
            warm(ground, books)
            hand.drain()
        books.clear()
        books.enqueue("life", count, tenants=tenants)
        with ground.working(service) as hand:
            found = emptied(ground, books, hand, ground.watch(books, worker=hand.pids, service=[service.pid]))
        service.check_posts(count + WARM)
    return found


def emptied(ground: Ground, books: Books, hand: Hand, watch: Watch) -> Lived:
    """Wait until the full queue is empty, then let the hand end. Raises `Failed` where the rows disagree or a worker did not stay."""
    count = ground.scale.operations
    finished(ground, books, count)
    usage, session_count = watch.usage(), books.session_count()
    hand.check()
    hand.drain()
    all_lived = verified(books, count)
    return Lived(per_s=count / (all_lived.seconds or usage.seconds), session_count=session_count, usage=usage)


def warm(ground: Ground, books: Books) -> None:
    """Let a few operations live first, so that files, caches and modules are loaded."""
    books.enqueue("warm", WARM)
    finished(ground, books, WARM)


def finished(ground: Ground, books: Books, count: int) -> None:
    """Wait until nothing is left to do. Raises `Failed` when that takes too long."""
    until(
        lambda: books.progress().lane_count == 0,
        seams=ground.seams,
        what=f"the end of {count} operations",
        within_s=_AT_LEAST_S + count * _PER_OPERATION_S,
    )


def verified(books: Books, count: int) -> Lifecycles:
    """What became of them. Raises `Failed` unless each was sent once and is delivered."""
    lived = books.lifecycles()
    if (lived.operation_count, lived.delivered_count, lived.lane_count) != (count, count, 0):
        raise Failed(f"expected {count} operations that are delivered after one POST each, got {lived}")
    return lived
