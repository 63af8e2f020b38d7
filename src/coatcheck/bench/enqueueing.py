"""How fast an application can enqueue, on one connection: an operation in each transaction, and many in one, with each driver that is here."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import count

import psycopg

from coatcheck.bench.books import PROVIDER
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.enqueue import EnqueueRequest, enqueue, enqueue_sync, prepare
from coatcheck.seams import Clock

MANY = 100
"""Operations in one transaction of the bulk figures."""
Until = Callable[[], bool]


def measure(ground: Ground) -> Sequence[Figure]:
    """Operations per second."""
    rates = {"psycopg": _psycopg, "asyncpg": _asyncpg, "SQLAlchemy": _sqlalchemy}
    return [_figure(ground, driver, rate, size) for driver, rate in rates.items() for size in (1, MANY)]


def _figure(
    ground: Ground, driver: str, enqueued: Callable[[str, Iterator[EnqueueRequest], int, Until], int], size: int
) -> Figure:
    name = f"enqueue, {driver}, {size} in a transaction, one connection"
    if find_spec(driver.lower()) is None:
        return Figure(name=name, value=None, unit="1/s", limited_by=f"not measured: {driver} is not installed")
    clock = ground.seams.clock
    with ground.books() as books:
        books.clear()
        watch = ground.watch(books)
        done = enqueued(ground.url, _requests(f"{driver} {size}"), size, _after(clock, ground.scale.seconds))
        usage = watch.usage()
        books.clear()
    return Figure(name=name, value=done / usage.seconds, unit="1/s", limited_by=usage.limit)


def _requests(prefix: str) -> Iterator[EnqueueRequest]:
    """One intent after the other, each with a specification of its own."""
    for number in count(1):
        key = f"{prefix} {number}"
        yield prepare(tenant_id="bench 0", key=key, provider=PROVIDER, specification={"prompt": key})


def _after(clock: Clock, seconds: float) -> Until:
    end = clock.boottime() + seconds
    return lambda: clock.boottime() > end


def _psycopg(url: str, requests: Iterator[EnqueueRequest], size: int, is_over: Until) -> int:
    done = 0
    with psycopg.connect(url) as connection:
        while not is_over():
            for _ in range(size):
                enqueue_sync(connection, next(requests))
            connection.commit()
            done += size
    return done


def _asyncpg(url: str, requests: Iterator[EnqueueRequest], size: int, is_over: Until) -> int:
    return asyncio.run(_asyncpg_awaited(url, requests, size, is_over))


async def _asyncpg_awaited(url: str, requests: Iterator[EnqueueRequest], size: int, is_over: Until) -> int:
    import asyncpg  # noqa: PLC0415 - only where it is installed

    done = 0
    connection = await asyncpg.connect(url)
    try:
        while not is_over():
            async with connection.transaction():
                for _ in range(size):
                    await enqueue(connection, next(requests))
            done += size
    finally:
        await connection.close()
    return done


def _sqlalchemy(url: str, requests: Iterator[EnqueueRequest], size: int, is_over: Until) -> int:
    from sqlalchemy import create_engine  # noqa: PLC0415 - only where it is installed

    done = 0
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    try:
        with engine.connect() as connection:
            while not is_over():
                for _ in range(size):
                    enqueue_sync(connection, next(requests))
                connection.commit()
                done += size
    finally:
        engine.dispose()
    return done
