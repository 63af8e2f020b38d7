"""What a worker tells machines on its own port: that its loop runs, that it can take work, and its measures. Nobody can change anything there.

It asks the database on a connection of its own, so a worker that is busy or stuck neither delays the answers nor is delayed by them; and
however often somebody asks, it is asked at most every few seconds.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import psycopg
from aiohttp import web

from coatcheck.app.exposition import CONTENT_TYPE, exposition
from coatcheck.errors import CoatcheckError, Failed
from coatcheck.seams import Clock, Seams
from coatcheck.store.db import Database, opened
from coatcheck.store.ends import installation_of
from coatcheck.store.stats import read_stats
from coatcheck.version import VERSION
from coatcheck.workers.loop import Worker

ASKED_EVERY_S = 2.0
ANSWER_S = 5.0
"""A database that takes longer counts as away."""

Answer = TypeVar("Answer")


class Lately(Generic[Answer]):
    """What the database answered lately; None while it does not answer."""

    def __init__(self, ask: Callable[[], Awaitable[Answer]], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._turn = asyncio.Lock()
        self._asked_at: float | None = None
        self._answer: Answer | None = None

    async def answer(self) -> Answer | None:
        """The answer, at most `ASKED_EVERY_S` old."""
        async with self._turn:
            if self._asked_at is None or self._clock.boottime() - self._asked_at >= ASKED_EVERY_S:
                self._answer = await self._asked()
                self._asked_at = self._clock.boottime()
            return self._answer

    async def _asked(self) -> Answer | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._ask()
        except (psycopg.Error, CoatcheckError, TimeoutError):
            return None


class _Answers:
    """One method for each path."""

    def __init__(self, worker: Worker, incarnation: str, database: Database, seams: Seams) -> None:
        self._worker = worker
        self._incarnation = incarnation
        self._ready = Lately(lambda: installation_of(database), seams.clock)
        self._stats = Lately(lambda: read_stats(database), seams.clock)

    async def healthz(self, _: web.Request) -> web.Response:
        """An answer at all is the answer."""
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """Whether it takes work."""
        if self._worker.is_draining:
            return web.Response(status=503, text="draining\n")
        if await self._ready.answer() is None:
            return web.Response(status=503, text="the database does not answer\n")
        return web.Response(text="ready\n")

    async def metrics(self, _: web.Request) -> web.Response:
        """One scrape."""
        text = exposition(self._incarnation, VERSION, self._worker.tally, await self._stats.answer())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})


@asynccontextmanager
async def health(
    worker: Worker, incarnation: str, url: str, *, host: str, port: int, seams: Seams
) -> AsyncIterator[int]:
    """Answer `/healthz`, `/readyz` and `/metrics` for the length of a block; the port that was taken, as 0 takes any that is free.

        async with health(worker, incarnation, url, host="127.0.0.1", port=0, seams=seams) as port: ...

    Raises `Failed` when host and port cannot be had.
    """
    async with opened(url, seams=seams, name="health") as database:
        answers = _Answers(worker, incarnation, database, seams)
        application = web.Application()
        application.add_routes(
            [web.get(f"/{each.__name__}", each) for each in (answers.healthz, answers.readyz, answers.metrics)]
        )
        # a probe every few seconds is nothing to log, and whoever is half-way through one when the worker ends can ask another
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            yield await _listen(runner, host, port)
        finally:
            await runner.cleanup()


async def _listen(runner: web.AppRunner, host: str, port: int) -> int:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        remedy = "choose another --health-port, or 0 for any that is free"
        raise Failed(f"--health-port: cannot listen on {host} port {port}: {error.strerror}", next=remedy) from None
    return int(runner.addresses[0][1])
