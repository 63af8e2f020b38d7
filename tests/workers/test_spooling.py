"""When the end of a POST goes to the disk: not while all is well, at once when the database is away or the worker is cut off, and never twice."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coatcheck.seams import Point, Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Record
from coatcheck.workers.spooling import Spooling
from faults.strike import Deed, Strike, Striking, Unforeseen
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
        struck = Striking([Strike(point=Point.S1_APPENDING, deed=Deed.RAISE)])
        desk = Desk(tmp_path, seams=replace(Seams.real(), faults=struck))
        desk.away.set()

        async def a_moment() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        with pytest.raises(Unforeseen):
            await desk.save(a_moment)
        assert desk.is_kept()

    asyncio.run(story())
