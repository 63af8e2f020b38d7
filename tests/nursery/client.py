"""Children from a nursery, seen by whoever asked for them: born in milliseconds, waited for and signalled as any other child, never left behind.

A child has a line of its own and nothing is shared between two of them, so threads may each have theirs.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nursery.main import LIMIT_BYTES, Wish

TESTS = Path(__file__).resolve().parent.parent
PYTHONPATH = os.pathsep.join(filter(None, (os.fspath(TESTS), os.environ.get("PYTHONPATH"))))
"""Where a child process finds the modules beside these tests."""
END_S = 60.0


class Born:
    """One child, with the methods of `subprocess.Popen` that tests use. It is killed when it is forgotten."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._status: int | None = None
        self.returncode: int | None = None
        self.pid = 0
        while self.pid == 0 and self.returncode is None:
            self._hear(END_S)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        self._hear(0.0)
        return self.returncode

    def wait(self, timeout: float = END_S) -> int:
        """Wait for the end; the exit code, negative for a signal. Raises `subprocess.TimeoutExpired`."""
        end = time.monotonic() + timeout
        while self.returncode is None:
            left_s = end - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(f"child {self.pid} of the nursery", timeout)
            self._hear(left_s)
        return self.returncode

    @property
    def stands_still(self) -> bool:
        """Whether it was stopped and not continued."""
        self._hear(0.0)
        return self._status is not None and os.WIFSTOPPED(self._status)

    def send_signal(self, number: int) -> None:
        """Signal it, if it lives."""
        if self.poll() is None:
            with suppress(ConnectionError):
                self._line.send(json.dumps({"signal": number}).encode())

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def forget(self) -> None:
        """Hear no more of it; the nursery kills it."""
        self._line.close()

    def _hear(self, within_s: float) -> None:
        """Take in what became of it, waiting for that no longer than this."""
        while self.returncode is None and select.select([self._line], [], [], within_s)[0]:
            within_s = 0.0
            try:
                packet = self._line.recv(LIMIT_BYTES)
            except ConnectionError:
                packet = b""
            # a nursery that is gone has killed its children
            told: dict[str, int] = json.loads(packet) if packet else {"status": signal.SIGKILL}
            self.pid = told.get("born", self.pid)
            self._take(told.get("status"))

    def _take(self, status: int | None) -> None:
        self._status = status
        if status is not None and not os.WIFSTOPPED(status) and not os.WIFCONTINUED(status):
            self.returncode = os.waitstatus_to_exitcode(status)
            self._line.close()


class Nursery:
    """A process that has imported `courses`, modules with a `run`, for as long as the block lasts; its children end with it."""

    def __init__(self, *courses: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the nursery
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nursery.main", str(theirs.fileno()), *courses],
                env={**os.environ, "PYTHONPATH": PYTHONPATH},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
            )

    def child(
        self,
        course: str,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        folder: Path | None = None,
    ) -> Born:
        """One more child that runs `course`, with these variables and no others, these three open files, in this folder."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wish: dict[str, Any] = {
            "course": course,
            "arguments": list(arguments),
            "env": dict(env),
            "folder": None if folder is None else os.fspath(folder),
        }
        assert set(wish) == set(Wish.__slots__)
        with theirs:
            socket.send_fds(self._asked, [json.dumps(wish).encode()], [*streams, theirs.fileno()])
        born = Born(ours)
        assert born.pid, self._talk
        return born

    @property
    def pid(self) -> int:
        """Whose children they are."""
        return self._process.pid

    def lives_on(self, seconds: float) -> None:
        """So much time passes, and the nursery is still there."""
        gone, _, _ = select.select([self._asked], [], [], seconds)
        assert not gone, self._talk

    def close(self) -> None:
        """Let it end, and wait until it has."""
        self._asked.close()
        code = self._process.wait(END_S)
        with self._said:
            assert code == 0, self._talk

    @property
    def _talk(self) -> str:
        self._said.seek(0)
        return self._said.read().decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
