"""A parent and its processes, tried on small programs: who is started anew and when, what orders they hear, and how it all ends.

Waiting takes no time here: what is waited for is written down, and the clock stands still.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from coatcheck.cli.processes import Processes
from coatcheck.cli.signals import ORDERS
from coatcheck.errors import Failed, Refused, Unavailable
from coatcheck.seams import Clock, Seams
from waiting import until_async

OBEDIENT = ("sh", "-c", "head -c 1 > heard")
"""Ends well once it hears an order, or that its parent is gone."""


class Still(Clock):
    """It is always the same moment."""

    def boottime(self) -> float:
        return 1000.0


class Kept:
    """A parent under way in this process."""

    def __init__(self, *commands: Sequence[str], until_idle: bool = False) -> None:
        self.waited: list[float] = []
        seams = Seams(clock=Still(), sleep=self._sleep)
        self.processes = Processes(commands, until_idle=until_idle, seams=seams)

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def ended(self, story: Callable[[], object] = lambda: None) -> int:
        """Run it to its end while the story waits for something and does something about it."""

        async def course() -> int:
            running = asyncio.ensure_future(self.processes.run())
            told = asyncio.ensure_future(self._told(story))
            code = await asyncio.wait_for(running, 30)
            await told
            return code

        before = {each: signal.getsignal(each) for each in ORDERS}
        try:
            return asyncio.run(course())
        finally:
            # a parent that ends hears nothing more, and this process goes on
            for each, disposition in before.items():
                signal.signal(each, disposition)

    async def _told(self, story: Callable[[], object]) -> None:
        answer = story()
        if asyncio.iscoroutine(answer):
            await answer


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs leave their traces."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sh(text: str) -> tuple[str, ...]:
    return ("sh", "-c", text)


def test_one_that_dies_again_and_again_is_given_up_and_the_others_are_drained(folder: Path) -> None:
    kept = Kept(sh("echo >> lives; exit 3"), OBEDIENT)
    with pytest.raises(Failed, match="process 1 ended 5 times within 60 s with exit code 3"):
        kept.ended()
    assert kept.waited == [1, 2, 4, 8]
    assert (folder / "lives").read_text().count("\n") == 5
    assert (folder / "heard").read_bytes() == b"d"


def test_one_that_is_refused_is_not_started_anew(folder: Path) -> None:
    kept = Kept(OBEDIENT, sh("exit 2"))
    with pytest.raises(Refused, match="process 2 ended with exit code 2"):
        kept.ended()
    assert kept.waited == []


def test_a_killed_one_is_started_anew_and_says_so(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept(sh("test -e again || { touch again; kill -9 $$; }"), until_idle=True)
    assert kept.ended() == 0
    assert kept.waited == [1]
    told = [(record.message, getattr(record, "how", None)) for record in caplog.records if record.levelname == "ERROR"]
    assert told == [("process ended", "SIGKILL")]
    assert "process starts anew" in caplog.text


def test_an_outage_is_waited_out(folder: Path) -> None:
    kept = Kept(sh("echo >> lives; test $(wc -l < lives) -gt 7 || exit 6"), until_idle=True)
    assert kept.ended() == 0
    assert kept.waited == [1, 2, 4, 8, 16, 30, 30]


def test_without_until_idle_one_that_ended_well_is_replaced(folder: Path) -> None:
    """Whoever drains one process by hand has it replaced."""
    kept = Kept(sh("echo >> lives; test $(wc -l < lives) -lt 3 || head -c 1"))

    async def story() -> None:
        await until_async(lambda: (folder / "lives").exists() and (folder / "lives").read_text().count("\n") == 3)
        kept.processes.drain()

    assert kept.ended(story) == 0
    assert kept.waited == [1, 2]


@pytest.mark.parametrize("code", [0, 130])
def test_one_that_ends_well_again_and_again_is_given_up_and_that_is_no_good_end(folder: Path, code: int) -> None:
    kept = Kept(sh(f"echo >> lives; exit {code}"), OBEDIENT)
    with pytest.raises(Failed, match=f"process 1 ended 5 times within 60 s with exit code {code}"):
        kept.ended()
    assert (folder / "lives").read_text().count("\n") == 5
    assert (folder / "heard").read_bytes() == b"d"


def test_the_worst_end_is_the_end_of_all(folder: Path) -> None:
    kept = Kept(sh("head -c 1"), sh("head -c 1; exit 6"), sh("head -c 1; exit 130"))

    async def story() -> None:
        await until_async(lambda: len(kept.processes._living) == 3)
        kept.processes.drain()

    with pytest.raises(Unavailable, match=r"^process 2 ended with exit code 6(\n|$)"):
        kept.ended(story)


def test_one_that_dies_while_all_drain_is_no_good_end_and_is_not_replaced(folder: Path) -> None:
    kept = Kept(sh("head -c 1; kill -9 $$"))

    async def story() -> None:
        await until_async(lambda: kept.processes._living)
        kept.processes.drain()

    with pytest.raises(Failed, match="process 1 ended with SIGKILL"):
        kept.ended(story)


def test_sigterm_however_often_drains_and_the_second_interrupt_stops(folder: Path) -> None:
    kept = Kept(sh("head -c 4 > heard; exit 130"))

    async def story() -> None:
        await until_async(lambda: kept.processes._living)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            os.kill(os.getpid(), number)
            # the loop takes up one signal after the other
            await until_async(lambda: True)

    assert kept.ended(story) == 130
    assert (folder / "heard").read_bytes() == b"ddds"


LONG_END = """
import asyncio, sys, threading
from coatcheck.cli.processes import Processes
from coatcheck.seams import Seams
elsewhere = threading.Thread(target=threading.Event().wait, daemon=True)
elsewhere.start()
try:
    code = asyncio.run(Processes([["true"]], until_idle=True, seams=Seams.real()).run())
    print("leaving", flush=True)
    sys.stdin.read()
    print("left", flush=True)
except KeyboardInterrupt:
    code = 130
sys.exit(code)
"""
"""A parent that leaves what takes its time, as the embedded server does, with a second thread. It has left at the end of its stdin."""


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_a_long_end_is_interrupted_by_a_person_and_by_no_wish_to_drain(is_interrupted: bool) -> None:
    command = [sys.executable, "-c", LONG_END]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"leaving\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        if is_interrupted:
            process.send_signal(signal.SIGINT)
            assert (process.stdout.read(), process.wait(60)) == (b"", 130)
        else:
            process.stdin.close()
            assert (process.stdout.read(), process.wait(60)) == (b"left\n", 0)


def test_the_third_interrupt_ends_who_does_not_listen(folder: Path) -> None:
    kept = Kept(sh("touch begun; exec sleep 60"))

    async def story() -> None:
        await until_async((folder / "begun").exists)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
            await until_async(lambda: True)

    assert kept.ended(story) == 130


def test_processes_hear_no_signal_before_they_listen(folder: Path) -> None:
    """One that comes in their first moments waits: all are held back in the program that was started."""
    kept = Kept(("cp", "/proc/self/status", "status"), until_idle=True)
    assert kept.ended() == 0
    (line,) = [each for each in (folder / "status").read_text().splitlines() if each.startswith("SigBlk")]
    held = int(line.split()[1], 16)
    assert [held & (1 << each - 1) > 0 for each in ORDERS] == [True, True, True]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_where_the_system_has_no_room_for_a_process_it_is_tried_again(folder: Path) -> None:
    kept = Kept(("./there-is-no-such-program",))
    with pytest.raises(Failed, match="process 1 ended 5 times"):
        kept.ended()
    assert kept.waited == [1, 2, 4, 8]
