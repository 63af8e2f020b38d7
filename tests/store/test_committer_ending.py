"""The committer's end: it waits only for what must not be lost, and everybody who waits hears of it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.committer import STOP_S, Committer, Lane
from store.writers import Item, Writer, away, enqueued, trial


def test_closing_writes_what_waits_and_refuses_what_comes_later() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        tasks = await enqueued(made, [Item(key) for key in range(10)])
        writer.held.set()
        await made.close()
        assert await asyncio.gather(*tasks) == [str(key) for key in range(10)]
        with pytest.raises(Unavailable):
            await made.save(Item(11))

    assert sum(len(batch) for batch in trial(story).written) == 10


def locked(_batch: Sequence[Item]) -> None:
    raise psycopg.errors.LockNotAvailable


@pytest.mark.parametrize("fails", [away, locked])
def test_once_the_worker_drains_only_what_lasts_waits_for_the_database(
    fails: Callable[[Sequence[Item]], None],
) -> None:
    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = fails
        writer.held.set()
        lasting = asyncio.create_task(made.save(Item(1), lasting=True))
        brief = asyncio.create_task(made.save(Item(2)))
        await asyncio.sleep(0)
        made.drain()
        with pytest.raises(Unavailable):
            await brief
        with pytest.raises(Unavailable):
            await made.save(Item(3))
        assert not lasting.done()
        writer.fails = lambda _batch: None
        assert await lasting == "1"
        assert await made.save(Item(4)) == "4"

    assert [item.key for batch in trial(story).written for item in batch] == [1, 4]


def test_a_connection_that_broke_is_no_reason_to_give_up_while_draining() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        errors = iter([CommitUnknown("broke", next="look")])

        def fails(_batch: Sequence[Item]) -> None:
            for error in errors:
                raise error

        writer.fails = fails
        writer.held.set()
        made.drain()
        assert await made.save(Item(1)) == "1"

    trial(story)


def test_stopped_it_gives_up_even_what_lasts_and_takes_nothing_more() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = away
        writer.held.set()
        lasting = asyncio.create_task(made.save(Item(1), lasting=True))
        await asyncio.sleep(0)
        made.stop()
        with pytest.raises(Unavailable):
            await lasting
        with pytest.raises(Unavailable):
            await made.save(Item(2))

    assert trial(story).written == []


def test_stopped_it_waits_a_moment_for_a_database_that_does_not_answer_and_no_longer() -> None:
    async def story() -> None:
        writer = Writer()
        made = Committer({Item: Lane(write=writer.write, key=lambda item: item.key)}, seams=Seams.real())
        lasting = asyncio.create_task(made.save(Item(1), lasting=True))
        await asyncio.sleep(0)
        made.stop()
        async with asyncio.timeout(STOP_S + 5):
            with pytest.raises(Unavailable):
                await lasting
            await made.close()

    asyncio.run(story())


def test_whoever_waits_when_the_loop_ends_hears_of_it() -> None:
    async def story() -> list[Any]:
        writer = Writer()
        made = Committer({Item: Lane(write=writer.write, key=lambda item: item.key)}, seams=Seams.real())
        tasks = await enqueued(made, [Item(key) for key in range(3)])
        await asyncio.sleep(0)
        (running,) = [task for task in asyncio.all_tasks() if task.get_name() == "committer"]
        running.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(story())] == [Unavailable] * 3
