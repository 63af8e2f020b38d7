"""A worker in a process of its own, or in several: the real `coatcheck worker`, so that what is measured is the product and not a likeness."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coatcheck.bench import processes, tether
from coatcheck.bench.patience import until
from coatcheck.errors import Failed
from coatcheck.seams import Seams

WORKER = tether.command("coatcheck", "worker", "--log-level", "error")
_READY_WITHIN_S = 60.0
_ENDS_WITHIN_S = 120.0
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
    """One `coatcheck worker` whose processes all lease. `incarnations` are the names under which they do."""

    process: Process = field(repr=False)
    log: Path
    incarnations: Sequence[str]
    seams: Seams = field(repr=False)

    @property
    def incarnation(self) -> str:
        """Of a worker alone."""
        return self.incarnations[0]

    @property
    def pid(self) -> int:
        """Of the process that was begun; of several it is their parent, which works on nothing."""
        return self.process.pid

    @property
    def pids(self) -> Sequence[int]:
        """Of the processes that work, as far as the system tells."""
        several = processes.children(self.pid) if len(self.incarnations) > 1 else []
        return several or [self.pid]

    def kill(self) -> None:
        """SIGKILL: no handler, no farewell. Returns when it is dead."""
        self.process.kill()
        self.process.wait()

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
        """Raises `Failed` when it has ended."""
        if self.process.poll() is not None:
            raise _ended(self.process, self.log)


@contextmanager
def working(
    environ: Mapping[str, str],
    folder: Path,
    *,
    seams: Seams,
    command: Sequence[str] = WORKER,
    process_count: int = 1,
) -> Iterator[Hand]:
    """A worker of so many processes, all of them ready; none is left after the block, or after a kill of this process.

    Raises `Failed` when it does not become ready.
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
                _kill_all(process)


def _kill_all(process: Process) -> None:
    """The process and those that it began, which would drain if it alone were killed, with a database that is about to go."""
    # who is stopped begins no other one meanwhile
    process.send_signal(signal.SIGSTOP)
    begun = processes.children(process.pid)
    process.kill()
    process.wait()
    for pid in begun:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


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
    return Hand(process=process, log=log, incarnations=names, seams=seams)


def _incarnations(log: Path) -> Sequence[str]:
    """What a worker says of itself once it leases, and each of several processes."""
    lines = log.read_text(errors="replace").splitlines()
    return [line.removeprefix("ready ") for line in lines if line.startswith("ready ")]


def _ended(process: Process, log: Path) -> Failed:
    said = " · ".join(log.read_text(errors="replace").strip().splitlines()[-_SAID_LINES:])
    return Failed(f"expected a worker to work, got exit code {process.returncode}: {said}")
