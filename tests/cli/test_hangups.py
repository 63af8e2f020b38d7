"""A terminal or a reader that goes away: workers drain when their terminal is closed, and go on when only nobody reads what they say."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import postgres
from cli.several import end_left_at, in_a_group_of_its_own, left_at, lives, narrow, pids, ready
from cli.terminal import COATCHECK, Running, Terminal
from coatcheck.sim import ThreadedService
from waiting import until

ALONE = ("worker",)
SEVERAL = ("worker", "--processes", "2")


@contextmanager
def hangups(disposition: signal.Handlers) -> Iterator[None]:
    """What programs that are started inside the block do about a hangup at first."""
    before = signal.signal(signal.SIGHUP, disposition)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@contextmanager
def unread(terminal: Terminal, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command whose reader of stderr has hung up."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COATCHECK, *words]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=writing, env=dict(terminal.environ)) as process:
        os.close(writing)
        try:
            yield process
        finally:
            process.kill()


def begun(running: Running, words: tuple[str, ...]) -> None:
    if words == ALONE:
        running.said("ready ")
    else:
        ready(running)


def accepted(terminal: Terminal) -> list[bool]:
    listed = terminal.run("operations", "list", "--json").objects
    return [each["phase"] == "accepted" for each in listed]


@pytest.mark.parametrize("words", [ALONE, SEVERAL], ids=["alone", "several"])
def test_a_closed_terminal_drains_them(provided: Terminal, service: ThreadedService, words: tuple[str, ...]) -> None:
    """The whole group is hung up, once by the system and once by the shell. POSTs under way are finished and saved."""
    service.script([{"on": "create", "kind": "stall", "seconds": 1}])
    provided = narrow(provided)
    with hangups(signal.SIG_DFL), in_a_group_of_its_own(provided, *words) as running:
        begun(running, words)
        for number in range(4):
            provided.enqueue(f"k{number}")
        until(lambda: service.posts)
        for _ in range(2):
            os.killpg(running.process.pid, signal.SIGHUP)
        assert running.ended().code == 0
    assert "draining" in running.err.read_text()
    assert sum(accepted(provided)) == len(service.posts)
    assert not any(lives(pid) for _, pid in pids(running))


@pytest.mark.parametrize("words", [ALONE, SEVERAL], ids=["alone", "several"])
def test_who_was_started_to_outlive_its_terminal_does(
    provided: Terminal, service: ThreadedService, words: tuple[str, ...]
) -> None:
    """As by `nohup`, which has hangups ignored before the program starts."""
    with hangups(signal.SIG_IGN), in_a_group_of_its_own(provided, *words) as running:
        begun(running, words)
        os.killpg(running.process.pid, signal.SIGHUP)
        provided.enqueue("k1")
        until(lambda: all(accepted(provided)))
        assert "draining" not in running.err.read_text()
        running.process.terminate()
        assert running.ended().code == 0


def test_a_hangup_of_one_of_several_is_its_parents_to_hear(provided: Terminal) -> None:
    with hangups(signal.SIG_DFL), in_a_group_of_its_own(provided, *SEVERAL) as running:
        ready(running)
        (first, *_) = (pid for _, pid in pids(running))
        os.kill(first, signal.SIGHUP)
        running.process.send_signal(signal.SIGHUP)
        assert running.ended().code == 0
    assert "parent is gone" not in running.err.read_text()
    assert "process starts anew" not in running.err.read_text()


def test_a_worker_that_nobody_hears_works_and_drains(provided: Terminal, service: ThreadedService) -> None:
    provided.enqueue("k1")
    with unread(provided, "worker") as process:
        until(lambda: all(accepted(provided)))
        process.terminate()
        assert process.wait(60) == 0
    assert len(service.posts) == 1


def test_a_process_of_several_that_nobody_hears_is_replaced_by_one_that_works(
    provided: Terminal, service: ThreadedService, database: postgres.Database, tmp_path: Path
) -> None:
    """What it cannot say keeps neither the new one from its work nor any from draining."""
    home = tmp_path / "home"
    with unread(provided, *SEVERAL) as process:
        until(lambda: workers(database) == {"1", "2"})
        before = set(left_at(home))
        os.kill(min(before), signal.SIGKILL)
        until(lambda: len(left_at(home)) == 2 and set(left_at(home)) != before)
        until(lambda: incarnations(database) == 3)
        provided.enqueue("k1")
        until(lambda: all(accepted(provided)))
        process.terminate()
        assert process.wait(60) == 0
    assert left_at(home) == []


def incarnations(database: postgres.Database) -> int:
    """How many workers ever reported themselves."""
    with database.connect() as connection:
        rows = connection.execute("select incarnation from coatcheck.workers").fetchall()
    return len({each for (each,) in rows})


def workers(database: postgres.Database) -> set[str]:
    """The numbers of those that report themselves."""
    with database.connect() as connection:
        rows = connection.execute("select incarnation from coatcheck.workers").fetchall()
    return {each.rpartition(".")[2] for (each,) in rows}


def test_processes_that_were_left_behind_are_found_by_their_home_and_killed(tmp_path: Path) -> None:
    """The tests' own broom: a process of this home goes, one of another home stays."""
    words = ["sh", "-c", "read line", "--number", "1"]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, env={"COATCHECK_HOME": f"{tmp_path}/home"}) as ours,
        subprocess.Popen(words, stdin=subprocess.PIPE, env={"COATCHECK_HOME": f"{tmp_path}/other"}) as other,
    ):
        assert left_at(tmp_path / "home") == [ours.pid]
        end_left_at(tmp_path / "home")
        assert ours.wait(60) == -signal.SIGKILL
        assert other.poll() is None
