"""What a worker with nothing to do asks of PostgreSQL: two lives, one longer by a known time, and the transactions that the longer had more.

So neither what a beginning and an end cost is counted, nor what a session has not reported yet.
"""

from collections.abc import Sequence

from coatcheck.bench.books import Counters
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.patience import until
from coatcheck.bench.service import Service
from coatcheck.bench.usage import Usage

_SHORT_S = 1.0


def measure(ground: Ground) -> Sequence[Figure]:
    """Statements per second; each is a transaction of its own."""
    with ground.books() as books:
        books.clear()
    with ground.serving() as service:
        short, _ = _life(ground, service, _SHORT_S)
        long, usage = _life(ground, service, _SHORT_S + ground.scale.seconds)
    return [
        Figure(
            name="statements of an idle worker",
            value=(long - short) / ground.scale.seconds,
            unit="1/s",
            limited_by=f"its own pace; meanwhile {usage.limit}",
        )
    ]


def _life(ground: Ground, service: Service, seconds: float) -> tuple[int, Usage]:
    """Transactions of a worker that was idle for so long, from its start to its end; our own are the same few each time."""
    before = settled(ground).transaction_count
    with ground.working(service) as hand:
        with ground.books() as books:
            watch = ground.watch(books, worker=hand.pids, service=[service.pid])
            ground.seams.pause(seconds)
            usage = watch.usage()
        hand.drain()
    return settled(ground).transaction_count - before, usage


def settled(ground: Ground) -> Counters:
    """What the server has counted once every session of a worker has ended, and with it reported. Asked on connections of their own."""
    with ground.books() as books:
        until(
            lambda: books.session_count() == 0,
            seams=ground.seams,
            what="the end of all sessions of workers",
            within_s=60,
            every_s=0.5,
        )
    with ground.books() as books:
        return books.counters()
