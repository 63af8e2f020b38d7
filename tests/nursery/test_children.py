"""A child of the nursery finds itself in what a fresh process finds itself in, ends as one ends, and outlives nobody."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nursery.client import PYTHONPATH, Born, Nursery
from waiting import until

MIRROR = "nursery.mirror_main"
GIVEN = b"what it is given\n"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery(MIRROR) as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How a process ended and what it told."""

    code: int
    out: str
    err: str

    @property
    def found(self) -> dict[str, Any]:
        """Where it found itself."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[0])
        return found


def told(nursery: Nursery | None, folder: Path, end: str, **environ: str) -> Told:
    """Run the mirror to its end: a child of the nursery, or a fresh process where there is none."""
    env = {"PYTHONPATH": PYTHONPATH, "LANG": "C.UTF-8", **environ}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(GIVEN)
        given.seek(0)
        process: Born | subprocess.Popen[bytes]
        if nursery is None:
            command = [sys.executable, "-m", MIRROR, end]
            process = subprocess.Popen(command, stdin=given, stdout=out, stderr=err, env=env, cwd=folder)
        else:
            streams = (given.fileno(), out.fileno(), err.fileno())
            process = nursery.child(MIRROR, [end], env=env, streams=streams, folder=folder)
        code = process.wait(60)
        for each in (out, err):
            each.seek(0)
        return Told(code=code, out=out.read().decode(), err=err.read().decode())


def test_it_finds_what_a_fresh_process_finds_and_nothing_of_anothers(nursery: Nursery, tmp_path: Path) -> None:
    fresh = told(None, tmp_path, "end", COLOUR="röt", TZ="Asia/Tokyo").found
    first, second = (told(nursery, tmp_path, "end", COLOUR="röt", TZ="Asia/Tokyo").found for _ in range(2))
    own = [each.pop("own") for each in (fresh, first, second)]
    assert fresh == first == second
    assert not {*own[1]} & {*own[2]}
    assert (first["environ"]["COLOUR"], first["folder"]) == ("röt", os.fspath(tmp_path))


@pytest.mark.parametrize(
    ("end", "code"),
    [("end", 0), ("code", 7), ("words", 1), ("late", 0), ("signal", -signal.SIGTERM), ("interrupt", -signal.SIGINT)],
)
def test_it_ends_as_a_fresh_process_ends(nursery: Nursery, tmp_path: Path, end: str, code: int) -> None:
    fresh, child = (told(source, tmp_path, end) for source in (None, nursery))
    assert child.code == fresh.code == code
    assert (
        child.out.splitlines()[1:]
        == fresh.out.splitlines()[1:]
        == ["a thread's word", "the last word"] * (end == "late")
    )
    assert child.err.partition("Traceback")[0] == fresh.err.partition("Traceback")[0]
    assert child.err.splitlines()[-1] == fresh.err.splitlines()[-1]


def test_a_surprise_is_a_traceback_and_1_and_never_gets_back_into_the_nursery(nursery: Nursery, tmp_path: Path) -> None:
    child = told(nursery, tmp_path, "surprise")
    assert (child.code, child.err.splitlines()[-1]) == (1, "ValueError: surprise")
    assert told(nursery, tmp_path, "end").code == 0


def sleeper(nursery: Nursery) -> Born:
    """A child that waits for its standard input."""
    reading, writing = os.pipe()
    try:
        with Path(os.devnull).open("wb") as out:
            return nursery.child(MIRROR, ["end"], env={}, streams=(reading, out.fileno(), out.fileno()))
    finally:
        os.close(reading)
        OPEN.append(writing)


OPEN: list[int] = []
"""The other ends of what sleepers read."""


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        os.close(OPEN.pop())


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_is_stopped_continued_and_killed_by_its_own_signals_only(nursery: Nursery) -> None:
    first, second = sleeper(nursery), sleeper(nursery)
    first.send_signal(signal.SIGSTOP)
    until(lambda: first.stands_still)
    assert not second.stands_still
    first.send_signal(signal.SIGCONT)
    until(lambda: not first.stands_still)
    first.kill()
    assert (first.wait(), second.poll()) == (-signal.SIGKILL, None)
    first.kill()
    second.terminate()
    assert second.wait() == -signal.SIGTERM


def test_a_wait_for_one_that_goes_on_ends_in_time(nursery: Nursery) -> None:
    child = sleeper(nursery)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)
    child.forget()


def test_one_that_is_forgotten_is_killed(nursery: Nursery) -> None:
    child = sleeper(nursery)
    child.forget()
    until(lambda: not is_there(child.pid))


def test_none_outlives_its_nursery_nor_that_whom_it_works_for() -> None:
    """Whoever asked is killed, as by a runner's end: the nursery and its child go, too."""
    program = (
        "import os, signal, sys, pathlib\n"
        "from nursery.client import Nursery\n"
        "from nursery.test_children import sleeper\n"
        f"running = Nursery({MIRROR!r})\n"
        "print(running.pid, sleeper(running).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": PYTHONPATH}, capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    for pid in map(int, ended.stdout.split()):
        until(lambda: not is_there(pid))  # noqa: B023 - called within the round
