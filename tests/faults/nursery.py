"""Children from the nursery, seen from their test: born in milliseconds, waited for and signalled as any other child, and never left behind."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faults.child import END_S, Child

TESTS = Path(__file__).resolve().parent.parent
PYTHONPATH = os.pathsep.join(filter(None, (os.fspath(TESTS), os.environ.get("PYTHONPATH"))))
"""Where a child process finds the modules beside these tests."""


class Nursery:
    """The process that has imported everything. `nursery.child("worker", [...], env=…, folder=…, name=…)`."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._births: list[int] = []
        self._states: dict[int, int] = {}
        self.born_count = 0
        self.is_over = False
        """Whether it has ended, and with it every child."""

    def child(
        self, course: str, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path, name: str
    ) -> "Forked":
        """One more child that runs `course`, with these variables and no others."""
        paths = {stream: os.fspath(folder / f"{name}.{stream}") for stream in ("out", "err")}
        for path in paths.values():
            Path(path).touch()
        self._say({"course": course, "arguments": list(arguments), "env": dict(env), **paths})
        while not self._births:
            self.hear(END_S)
        self.born_count += 1
        return Forked(self, self._births.pop(), folder=folder, name=name)

    def send_signal(self, pid: int, number: int) -> None:
        """Signal a child, if it lives."""
        self._say({"pid": pid, "signal": number})

    def status(self, pid: int) -> int | None:
        """The last that became of a child, as waitpid tells it; None while nothing did."""
        if not self.is_over:
            self.hear(0.0)
        known = self._states.get(pid)
        is_alive = known is None or os.WIFSTOPPED(known) or os.WIFCONTINUED(known)
        return int(signal.SIGKILL) if self.is_over and is_alive else known

    def hear(self, within_s: float) -> None:
        """Take in what the nursery told, waiting for it no longer than this."""
        while select.select([self._line], [], [], within_s)[0]:
            told: dict[str, Any] = json.loads(self._line.recv(1 << 16))
            if "born" in told:
                self._births.append(told["born"])
            else:
                self._states[told["pid"]] = told["status"]
            within_s = 0.0

    def _say(self, wish: Mapping[str, object]) -> None:
        self._line.send(json.dumps(wish).encode())


class Forked(Child):
    """One child of the nursery."""

    def __init__(self, nursery: Nursery, pid: int, *, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._nursery = nursery
        self.pid = pid

    def ended(self, *, within_s: float = END_S) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        end = time.monotonic() + within_s
        while (code := self._code) is None:
            left_s = end - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a child of the nursery", within_s)
            self._nursery.hear(left_s)
        return code

    @property
    def _code(self) -> int | None:
        status = self._nursery.status(self.pid)
        if status is None or os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
            return None
        return os.waitstatus_to_exitcode(status)

    @property
    def running(self) -> bool:
        return self._code is None

    @property
    def stands_still(self) -> bool:
        status = self._nursery.status(self.pid)
        return status is not None and os.WIFSTOPPED(status)

    def signal(self, number: int) -> None:
        self._nursery.send_signal(self.pid, number)


@contextmanager
def nursery_of(folder: Path) -> Iterator[Nursery]:
    """A nursery for as long as the block lasts; its children end with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, (folder / "nursery.err").open("wb") as err:
        with theirs:
            number = theirs.fileno()
            process = subprocess.Popen(
                [sys.executable, "-m", "faults.nursery_main", str(number)],
                env={**os.environ, "PYTHONPATH": PYTHONPATH},
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
            )
        nursery = Nursery(ours)
        yield nursery
        nursery.is_over = True
    assert process.wait(END_S) == 0, (folder / "nursery.err").read_text()
