"""How long a paid id is at risk: from the last byte of the reply to the commit of the id, at a steady load below what the worker can do.

Both ends are seen where they happen: the service notes when it handed the last byte to the kernel, the worker when the commit was answered.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from coatcheck.bench import lifecycle, witness
from coatcheck.bench.books import Books
from coatcheck.bench.figure import Figure, quantile
from coatcheck.bench.ground import Ground
from coatcheck.errors import Failed

LOAD = 0.7
"""Of the measured throughput."""
_TICK_S = 0.02


def measure(ground: Ground) -> Sequence[Figure]:
    """Milliseconds, the median and the 99th percentile."""
    throughput = ground.throughput or lifecycle.throughput(ground).per_s
    rate = LOAD * throughput
    notes = ground.home / "notes.json"
    with ground.books() as books, ground.serving() as service:
        books.clear()
        with ground.working(service, command=witness.command(notes)) as hand:
            lifecycle.warm(ground, books)
            watch = ground.watch(books, worker=hand.pids, service=[service.pid])
            count = offer(ground, books, rate)
            limit = watch.usage().limit
            lifecycle.finished(ground, books, count)
            hand.drain()
        taken = _taken_ms(json.loads(notes.read_text())["saved_at"], books.accepted(), service.posts())
    if len(taken) < count:
        raise Failed(f"expected to have seen {count} accepted ids, got {len(taken)}")
    at = f"at {rate:.0f}/s"
    return [
        Figure(
            name=f"last byte of the reply to committed id, p50, {at}",
            value=quantile(taken, 0.5),
            unit="ms",
            limited_by=limit,
        ),
        Figure(
            name=f"last byte of the reply to committed id, p99, {at}",
            value=quantile(taken, 0.99),
            unit="ms",
            limited_by=limit,
        ),
    ]


def offer(ground: Ground, books: Books, rate: float) -> int:
    """Enqueue at a steady rate, as if by many clients; how many there were. What the machine cannot take in a tick is made up for in the next."""
    clock, asked = ground.seams.clock, 0
    began = clock.boottime()
    while (passed := clock.boottime() - began) < ground.scale.seconds:
        due = int(passed * rate) - asked
        if due > 0:
            books.enqueue("offered", due, first=asked + 1)
            asked += due
        ground.seams.pause(_TICK_S)
    return asked


def _taken_ms(
    saved_at: Mapping[str, float], hashes: Mapping[str, str], posts: Sequence[Mapping[str, Any]]
) -> list[float]:
    replied_at = {post["body_sha256"]: datetime.fromisoformat(post["replied_at"]).timestamp() for post in posts}
    return [
        (saved_at[operation] - replied_at[digest]) * 1000
        for operation, digest in hashes.items()
        if operation in saved_at
    ]
