"""After kill -9 of a worker: when its looks go on elsewhere, and when its POSTs count as in doubt. Nothing can be sooner than the end of a lease.

The worker that takes over is started after the first one has everything in hand, and runs when that is killed.
"""

from collections.abc import Callable, Mapping, Sequence

from coatcheck.bench.books import Books, Leased
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.patience import LOOK_EVERY_S, until

_LOOKS, _POSTS = 20, 5
"""In hand when the worker is killed. Few POSTs in doubt: twenty in a row would pause the account."""
_WATCHED = ',"sim":{"processing_s":1000000,"queued_s":0}'
_STALLED = ',"sim":{"create":"stall"}'
_SHORT: Mapping[str, str] = {
    "SEND_S": "1",
    "TIMEOUT_S": "6",
    "SERVICE_LAG_S": "1",
    "MARGIN_S": "0.5",
    "WAIT_S": "3",
    "OBSERVE_TIMEOUT_S": "4",
}
_AT_LEAST_S = 240.0


def measure(ground: Ground) -> Sequence[Figure]:
    """Seconds from the kill."""
    settings = _SHORT if ground.scale.is_hurried else {}
    with ground.books() as books, ground.serving() as service:
        books.clear()
        with ground.working(service, **settings) as first:
            books.enqueue("watched", _LOOKS, more=_WATCHED)
            _until(ground, lambda: books.leased(first.incarnation).watched_count == _LOOKS, "looks that are under way")
            books.enqueue("stalled", _POSTS, more=_STALLED)
            _until(ground, lambda: books.leased(first.incarnation).sending_count == _POSTS, "POSTs that are under way")
            with ground.working(service, **settings) as second:
                first.kill()
                left = books.leased(first.incarnation)
                looks_s, posts_s = _gone_on(ground, books, second.incarnation)
        books.clear()
    return [
        Figure(name="looks go on after kill -9", value=looks_s, unit="s", limited_by=_lease(left.looks_end_s)),
        Figure(name="POSTs are in doubt after kill -9", value=posts_s, unit="s", limited_by=_lease(left.posts_end_s)),
    ]


def _gone_on(ground: Ground, books: Books, worker: str) -> tuple[float, float]:
    """Seconds until all looks are the other worker's, and until all POSTs are in doubt."""
    clock = ground.seams.clock
    began = clock.boottime()
    ends: dict[str, float] = {}

    def seen() -> bool:
        leased: Leased = books.leased(worker)
        if leased.watched_count == _LOOKS:
            ends.setdefault("looks", clock.boottime() - began)
        if leased.doubt_count == _POSTS:
            ends.setdefault("posts", clock.boottime() - began)
        return {"looks", "posts"} <= ends.keys()

    _until(ground, seen, "work that goes on elsewhere")
    return ends["looks"], ends["posts"]


def _until(ground: Ground, holds: Callable[[], object], what: str) -> None:
    until(holds, seams=ground.seams, what=what, within_s=_AT_LEAST_S, every_s=LOOK_EVERY_S)


def _lease(ends_in_s: float | None) -> str:
    return "leases" if ends_in_s is None else f"leases: the last one ended {ends_in_s:.1f} s after the kill"
