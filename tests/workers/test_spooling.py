"""When the end of a POST goes to the disk: not while all is well, at once when the database is away or the worker is cut off, and never twice."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coatcheck.errors import Unavailable
from coatcheck.seams import Faults, Point, Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Record
from coatcheck.workers.spooling import LEAVE_S, Spooling
from faults.strike import Unforeseen
from spool.records import INSTALLATION, of
from waiting import until_async

END = of(1)


class Desk:
    """A spool and what decides about it."""

    def __init__(self, home: Path, *, patience_s: float = 60.0, seams: Seams | None = None) -> None:
        self.folder = Folder(home)
        self.spool = Spool(self.folder, INSTALLATION, "w")
        self.away = asyncio.Event()
        self.spooling = Spooling(self.spool, self.away, seams or Seams.real(), patience_s=patience_s)
        self.made = 0

    def record(self) -> Record:
        self.made += 1
        return END

    async def save(self, body: Callable[[], Awaitable[object]]) -> None:
        async with asyncio.timeout(20), self.spooling.until_saved(END.dispatch_id, self.record):
            await body()

    def is_kept(self) -> bool:
        return bool(self.spool.open_lines())

    async def kept(self) -> None:
        await until_async(self.is_kept)


async def at_once() -> None:
    pass


async def for_ever() -> None:
    await asyncio.Event().wait()


class Reached(Faults):
    """Tells that a point was reached, and raises there."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self.event = asyncio.Event()

    def reached(self, point: Point, count: int = 0) -> None:
        if point is self._point:
            self.event.set()
            raise Unforeseen


def test_an_end_that_is_saved_in_time_never_touches_the_disk(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path)
        await desk.save(at_once)
        assert desk.made == 0
        assert not desk.folder.path.exists()

    asyncio.run(story())


@pytest.mark.parametrize("patience_s", [0.05, 60.0], ids=["it takes long", "it is known"])
def test_while_the_database_is_away_the_end_is_on_the_disk_and_then_no_more(tmp_path: Path, patience_s: float) -> None:
    async def story() -> None:
        desk = Desk(tmp_path, patience_s=patience_s)
        if patience_s > 1:
            desk.away.set()
        await desk.save(desk.kept)
        assert not desk.is_kept()
        assert [path.stat().st_size for path in desk.folder.all_files()] == [0]

    asyncio.run(story())


def test_whoever_is_cut_off_leaves_the_end_on_the_disk(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path)
        saving = asyncio.create_task(desk.save(for_ever))
        await asyncio.sleep(0)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
        assert desk.is_kept()
        desk.spool.close()
        assert [path.stat().st_size > 0 for path in desk.folder.all_files()] == [True]

    asyncio.run(story())


def test_a_surprise_leaves_it_there_until_somebody_saves_it(tmp_path: Path) -> None:
    async def surprise() -> None:
        raise Unforeseen

    async def story() -> None:
        desk = Desk(tmp_path)
        with pytest.raises(Unforeseen):
            await desk.save(surprise)
        assert desk.is_kept()
        # the handler saves it after all: what was kept before is the same line, and goes
        desk.away.set()
        await desk.save(desk.kept)
        assert not desk.is_kept()

    asyncio.run(story())


def test_what_nobody_saves_any_more_is_left_to_the_replay_and_nothing_else(tmp_path: Path) -> None:
    async def surprise() -> None:
        await desk.spooling.let_go()
        assert desk.spool.others() == []
        raise Unforeseen

    async def story() -> None:
        desk.away.set()
        with pytest.raises(Unforeseen):
            await desk.save(surprise)
        assert desk.spool.others() == []
        await desk.spooling.let_go()
        assert len(desk.spool.others()) == 1

    desk = Desk(tmp_path)
    asyncio.run(story())


def test_a_disk_that_refuses_is_said_once_and_does_not_stop_the_saving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        tries: list[float] = []
        twice = asyncio.Event()

        async def sleep(seconds: float) -> None:
            tries.append(seconds)
            if len(tries) > 1:
                twice.set()
                await asyncio.Event().wait()

        (tmp_path / "home").touch()
        desk = Desk(tmp_path / "home", seams=replace(Seams.real(), sleep=sleep))
        desk.away.set()
        await desk.save(twice.wait)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await desk.save(for_ever)
        assert not desk.is_kept()

    asyncio.run(story())
    told = [each for each in caplog.records if each.levelno == logging.CRITICAL]
    assert [each.__dict__["cause"] for each in told] == ["Not a directory"]


def test_a_disk_that_recovers_gets_the_line(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        home.touch()

        async def mended(seconds: float) -> None:
            home.unlink(missing_ok=True)

        desk = Desk(home, seams=replace(Seams.real(), sleep=mended))
        desk.away.set()
        await desk.save(desk.kept)

    asyncio.run(story())


def test_a_surprise_of_the_writing_is_not_swallowed(tmp_path: Path) -> None:
    async def story() -> None:
        reached = Reached(Point.S1_APPENDING)
        desk = Desk(tmp_path, seams=replace(Seams.real(), faults=reached))
        desk.away.set()
        with pytest.raises(Unforeseen):
            await desk.save(reached.event.wait)
        assert desk.is_kept()

    asyncio.run(story())


def test_a_worker_that_ends_leaves_what_is_on_the_disk_after_a_while_and_what_is_not_never(tmp_path: Path) -> None:
    """The database may be away, or hang: once the line is flushed, it is the next worker's."""

    async def story() -> None:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        desk = Desk(tmp_path, seams=replace(Seams.real(), sleep=sleep))
        saving = asyncio.create_task(desk.save(for_ever))
        await asyncio.sleep(0)
        desk.spooling.leave()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(saving), 0.3)
        assert (desk.is_kept(), desk.spooling.has_left) == (False, False)
        desk.away.set()
        with pytest.raises(Unavailable, match="the reply lies in the spool"):
            await saving
        assert slept == [LEAVE_S]
        assert (desk.is_kept(), desk.spooling.has_left) == (True, True)
        desk.spool.close()
        assert [path.stat().st_size > 0 for path in desk.folder.all_files()] == [True]

    asyncio.run(story())


def test_what_the_database_takes_while_the_worker_ends_is_not_left(tmp_path: Path) -> None:
    async def story() -> None:
        desk = Desk(tmp_path)
        desk.away.set()
        desk.spooling.leave()
        await desk.save(desk.kept)
        assert (desk.is_kept(), desk.spooling.has_left) == (False, False)

    asyncio.run(story())


def test_it_is_said_once_that_a_reply_was_kept_and_never_of_one_that_was_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def surprise() -> None:
        await desk.kept()
        raise Unforeseen

    async def story() -> None:
        desk.away.set()
        for _ in range(2):
            with pytest.raises(Unforeseen):
                await desk.save(surprise)
        desk.spool.close()
        desk.spooling.append_at_once(of(2))

    desk = Desk(tmp_path)
    asyncio.run(story())
    told = [each for each in caplog.records if each.name == "coatcheck.workers.spooling"]
    assert [each.message for each in told] == [
        "reply spooled",
        "the spool cannot be written: replies are in memory only",
    ]


def test_what_no_line_can_be_made_of_does_not_hide_why_it_was_to_be_one(tmp_path: Path) -> None:
    async def story() -> None:
        def unwritable() -> Record:
            raise RecursionError

        desk = Desk(tmp_path)
        with pytest.raises(Unforeseen) as told:
            async with desk.spooling.until_saved(END.dispatch_id, unwritable):
                raise Unforeseen
        assert isinstance(told.value.__cause__, RecursionError)

    asyncio.run(story())
