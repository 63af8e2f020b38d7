"""Several processes of one `worker` as tests see them: who was started and is ready, who still lives, and nobody left when a test is over."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cli.terminal import COATCHECK, Running, Terminal
from waiting import until

READY = re.compile(r"^ready \S+\.(\d+)$", re.MULTILINE)


def pids(running: Running) -> list[tuple[int, int]]:
    """Every process that it said it started: its number and the system's."""
    records = [json.loads(line) for line in running.err.read_text().splitlines() if line.startswith("{")]
    return [(each["process_number"], each["pid"]) for each in records if each["event"] == "process started"]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ready(running: Running, times: int = 2) -> list[str]:
    """The numbers of those who said that they are ready, once so many have."""
    until(lambda: len(READY.findall(running.err.read_text())) >= times or running.process.poll() is not None)
    found = READY.findall(running.err.read_text())
    assert len(found) >= times, running.err.read_text()
    return found


def narrow(terminal: Terminal) -> Terminal:
    """One POST at a time for each process, so that both have one."""
    return Terminal(folder=terminal.folder, environ={**terminal.environ, "COATCHECK_CONCURRENCY__DISPATCH": "1"})


@contextmanager
def in_a_group_of_its_own(terminal: Terminal, *words: str) -> Iterator[Running]:
    """A command that is started as a terminal starts it, in a process group that is signalled as a whole."""
    out, err = (terminal.folder / f"{words[0]}.{name}" for name in ("out", "err"))
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [*COATCHECK, *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=dict(terminal.environ),
            cwd=terminal.folder,
            process_group=0,
        )
        try:
            yield Running(process=process, out=out, err=err)
        finally:
            process.kill()
            process.wait()


def left_at(home: Path) -> list[int]:
    """Worker processes that a parent of this home had and that still live, by what they were started with."""
    place = f"COATCHECK_HOME={home}".encode()
    return [
        int(each.name)
        for each in Path("/proc").glob("[0-9]*")
        if b"--number" in _words(each / "cmdline") and place in _words(each / "environ")
    ]


def end_left_at(home: Path) -> None:
    """Kill them: a test that failed, or a product without its lifeline, would leave them behind for ever."""
    for pid in left_at(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _words(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile, or is somebody else's
        return []
