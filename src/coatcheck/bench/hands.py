"""A worker in a process of its own, or several of one command: the real `coatcheck worker`, so that what is measured is no likeness."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coatcheck.bench import kernel, tether
from coatcheck.bench.patience import until
from coatcheck.errors import Failed
from coatcheck.seams import Seams

WORKER = tether.command("coatcheck", "worker", "--log-level", "error")
_READY_WITHIN_S = 60.0
_ENDS_WITHIN_S = 120.0
_KILL_EVERY_S = 0.001
"""Some figures begin with a kill."""
_SAID_LINES = 5


class Process(Protocol):
    """What is asked of a process."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """See whether it has ended, and how."""

    def wait(self) -> int:
        """Wait for its end."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def send_signal(self, sig: int, /) -> None:
        """Send that signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """One `coatcheck worker`: a worker, or several and their parent.

    `incarnations` and `pids` are the workers', as of the moment when all were ready; without /proc `pids` of several is their parent's alone.
    """

    process: Process = field(repr=False)
    log: Path
    incarnations: Sequence[str]
    pids: Sequence[int]
    seams: Seams = field(repr=False)

    @property
    def incarnation(self) -> str:
        """Of a worker alone; of several, that of the one which was ready first."""
        return self.incarnations[0]

    @property
    def pid(self) -> int:
        """Of the process that was begun: a worker alone, or the parent of several, which works on nothing."""
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL to all of them: no handler, no farewell. Returns when they are dead, of several as far as the system tells."""
        _kill_all(self.process, self.seams)

    def drain(self) -> None:
        """Let it end in order. Raises `Failed` when it ends otherwise than well."""
        self.process.send_signal(signal.SIGTERM)
        self.end()

    def end(self) -> None:
        """Wait until it ends by itself. Raises `Failed` when it ends otherwise than well."""
        until(
            lambda: self.process.poll() is not None,
            seams=self.seams,
            what="the end of a worker",
            within_s=_ENDS_WITHIN_S,
        )
        if self.process.returncode != 0:
            raise _ended(self.process, self.log)

    def check(self) -> None:
        """Raises `Failed` when it has ended, or one of several workers did: of these only /proc tells."""
        if self.process.poll() is not None:
            raise _ended(self.process, self.log)
        if _workers(self.process, len(self.pids)) != self.pids:
            raise Failed(f"expected {len(self.pids)} workers that stay, got one that ended", next=f"read {self.log}")


@contextmanager
def working(
    environ: Mapping[str, str],
    folder: Path,
    *,
    seams: Seams,
    command: Sequence[str] = WORKER,
    process_count: int = 1,
) -> Iterator[Hand]:
    """So many workers of one command, all of them ready. None is left after the block.

    Nor after a kill of this process: a worker alone dies with it, several drain. Raises `Failed` when they do not become ready.
    """
    if process_count > 1:
        command = (*command, "--processes", str(process_count))
    log = folder / f"worker-{seams.ids.uuid7().hex}.log"
    with tether.tied() as stdin:
        with log.open("wb") as out:
            process = seams.spawn(command, env=environ, stdin=stdin, stdout=out, stderr=out, cwd=str(folder))
        try:
            yield _ready(process, log, seams, process_count)
        finally:
            if process.poll() is None:
                _kill_all(process, seams)


def _kill_all(process: Process, seams: Seams) -> None:
    """The process and those that it began, which would drain if it alone were killed, with a database that is about to go.

    Returns when they are dead.
    """
    # who is stopped begins no other one meanwhile, and a signal takes a moment to arrive
    process.send_signal(signal.SIGSTOP)
    _until(lambda: kernel.is_still(process.pid), seams, "a parent that stops")
    begun = kernel.children(process.pid)
    process.kill()
    process.wait()
    for pid in begun:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _until(lambda: all(kernel.is_dead(pid) for pid in begun), seams, "the end of workers that were killed")


def _until(holds: Callable[[], object], seams: Seams, what: str) -> None:
    until(holds, seams=seams, what=what, within_s=_ENDS_WITHIN_S, every_s=_KILL_EVERY_S)


def _ready(process: Process, log: Path, seams: Seams, process_count: int) -> Hand:
    until(
        lambda: len(_incarnations(log)) >= process_count or process.poll() is not None,
        seams=seams,
        what="a worker that is ready",
        within_s=_READY_WITHIN_S,
    )
    names = _incarnations(log)
    if len(names) < process_count:
        raise _ended(process, log)
    return Hand(process=process, log=log, incarnations=names, pids=_workers(process, process_count), seams=seams)


def _workers(process: Process, count: int) -> Sequence[int]:
    """The processes that work: of one worker the process itself, of several its children, where the system tells of them."""
    several = kernel.children(process.pid) if count > 1 else []
    return several or [process.pid]


def _incarnations(log: Path) -> Sequence[str]:
    """What a worker says of itself once it leases; several say so in one log."""
    lines = log.read_text(errors="replace").splitlines()
    return [line.removeprefix("ready ") for line in lines if line.startswith("ready ")]


def _ended(process: Process, log: Path) -> Failed:
    said = " · ".join(log.read_text(errors="replace").strip().splitlines()[-_SAID_LINES:])
    return Failed(f"expected a worker to work, got exit code {process.returncode}: {said}")
