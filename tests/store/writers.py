"""A writer for a committer: it writes into a list, waits as long as the trial wants, and fails as the trial wants."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from coatcheck.errors import Unavailable
from coatcheck.seams import Seams
from coatcheck.store.committer import Committer, Lane


@dataclass(frozen=True, slots=True)
class Item:
    """Something to write: its key and what becomes of it."""

    key: int
    text: str = ""


@dataclass
class Writer:
    """Writes items into a list. `held` keeps a batch from ending; `fails` raises what the trial wants."""

    written: list[list[Item]] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    fails: Callable[[Sequence[Item]], None] = lambda _batch: None

    async def write(self, batch: Sequence[Item]) -> list[str]:
        await self.held.wait()
        self.fails(batch)
        self.written.append(list(batch))
        return [f"{item.key}{item.text}" for item in batch]


@asynccontextmanager
async def committer(
    writer: Writer,
    *,
    resolve: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]] | None = None,
    away: asyncio.Event | None = None,
) -> AsyncIterator[Committer]:
    async def no_pause(seconds: float) -> None:
        await asyncio.sleep(0)

    seams = replace(Seams.real(), sleep=no_pause)
    made = Committer(
        {Item: Lane(write=writer.write, key=lambda item: item.key, resolve=resolve)}, seams=seams, away=away
    )
    try:
        yield made
    finally:
        writer.held.set()
        writer.fails = lambda _batch: None
        await made.close()


def trial(story: Callable[[Writer, Committer], Awaitable[None]], **how: Any) -> Writer:
    """Play a story with a writer that does not wait."""

    async def play() -> Writer:
        writer = Writer()
        async with committer(writer, **how) as made:
            await story(writer, made)
        return writer

    return asyncio.run(play())


async def enqueued(made: Committer, items: Sequence[Item]) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(made.save(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


def away(_batch: Sequence[Item]) -> None:
    raise Unavailable("away", next="wait")
