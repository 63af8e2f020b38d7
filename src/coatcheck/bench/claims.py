"""Claiming at size: what a worker's claim of a hundred takes while the store holds many operations, nearly all of them over."""

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace

from coatcheck.bench.books import PROVIDER, Books
from coatcheck.bench.figure import Figure, quantile
from coatcheck.bench.ground import Ground
from coatcheck.config import load_settings
from coatcheck.core.actions import Action
from coatcheck.queue.leases import Leases, Message, Release, Wanted
from coatcheck.store import db
from coatcheck.store.pauses import register

ROOM = 100
LIVE = 10_000
"""Operations that are due, at most: as many as there are rows where these are fewer."""
_ROUNDS = 3
_BATCH = 100_000
_WANTED = Wanted(action=Action.DISPATCH, provider=PROVIDER, account=PROVIDER, room=ROOM, lease_s=600)


def measure(ground: Ground) -> Sequence[Figure]:
    """Milliseconds at each size, the median and the 99th percentile."""
    figures: list[Figure] = []
    for rows in sorted(ground.scale.rows):
        with ground.books() as books:
            books.clear()
            live = _filled(ground, books, rows)
            watch = ground.watch(books)
            taken = asyncio.run(_claimed(ground))
            limit = watch.usage().limit
            books.clear()
        name = f"claim of {ROOM}, {{}}, {_spaced(rows)} operations, {_spaced(live)} due"
        figures += [
            Figure(name=name.format("p50"), value=quantile(taken, 0.5), unit="ms", limited_by=limit),
            Figure(name=name.format("p99"), value=quantile(taken, 0.99), unit="ms", limited_by=limit),
        ]
    return figures


def _filled(ground: Ground, books: Books, rows: int) -> int:
    """Operations that are over, and behind them those that are due; how many these are."""
    live = min(rows, LIVE)
    for first in range(1, rows - live + 1, _BATCH):
        books.crowd(first, min(rows - live, first + _BATCH - 1))
        ground.telling(f"  {min(rows - live, first + _BATCH - 1)} of {rows} operations are there")
    books.enqueue("due", live)
    books.analyze()
    return live


async def _claimed(ground: Ground) -> list[float]:
    """Claim all of them, give all of them back, and again; what each claim took after the first time, in milliseconds.

    The first time is a session's youth, in which it plans anew several times.
    """
    taken: list[float] = []
    settings = load_settings({"COATCHECK_PROVIDERS__BENCH__BASE_URL": "http://127.0.0.1:1"}, ground.home)
    async with db.opened(ground.url, seams=ground.seams, name="bench") as database:
        await register(database, settings)
        leases = Leases(database, "bench")
        await _given_back(leases, await _round(ground, leases, []))
        for _ in range(_ROUNDS):
            await _given_back(leases, await _round(ground, leases, taken))
    gc.unfreeze()
    return taken


async def _round(ground: Ground, leases: Leases, taken: list[float]) -> list[Message]:
    clock, found = ground.seams.clock, list[Message]()
    while True:
        began = clock.boottime()
        claimed = await leases.claim([_WANTED], doubts=ROOM, doubt_lease_s=30)
        if not claimed:
            return found
        taken.append((clock.boottime() - began) * 1000)
        # a worker holds no ten thousand, nor what they are about: looking through them for cycles took 20 to 40 ms of a claim
        found += [replace(each, subject=None) for each in claimed]
        gc.freeze()


async def _given_back(leases: Leases, messages: Sequence[Message]) -> None:
    for first in range(0, len(messages), ROOM):
        await leases.release([Release(message=each, delay_s=0) for each in messages[first : first + ROOM]])


def _spaced(count: int) -> str:
    return f"{count:_}".replace("_", " ")
