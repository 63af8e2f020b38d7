"""A child process seen from its test: waited for, stopped, continued, ended; never left behind. Its streams go to files, so that it never
waits for a reader."""

import json
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path

from coatcheck.seams import Point
from waiting import until

KILLED = -signal.SIGKILL
END_S = 60.0


class Child(ABC):
    """What a test does with a child, wherever it comes from."""

    def __init__(self, folder: Path, name: str) -> None:
        self._out = folder / f"{name}.out"
        self._err = folder / f"{name}.err"

    @abstractmethod
    def ended(self, *, within_s: float = END_S) -> int:
        """Wait for the end; the exit code, negative for a signal."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether it has not ended."""

    @property
    @abstractmethod
    def stands_still(self) -> bool:
        """Whether it was stopped and not continued."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Send it a signal."""

    def stopped(self) -> None:
        """Wait until it stands still at its strike."""
        until(lambda: not self.running or self.stands_still)
        assert self.running, self.talk

    def go_on(self) -> None:
        self.signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to drain."""
        self.signal(signal.SIGTERM)

    def stop(self) -> None:
        """Tell it to end at once, as a second interrupt does."""
        self.signal(signal.SIGINT)

    def kill(self) -> None:
        if self.running:
            self.signal(signal.SIGKILL)
            self.ended()

    def says(self, word: str) -> None:
        """Wait until it says `word`."""
        until(lambda: word in self.talk or not self.running)
        assert word in self.talk, self.talk

    @property
    def talk(self) -> str:
        """What it said on standard error."""
        return self._err.read_text()

    @property
    def told(self) -> str:
        """What it said on standard output."""
        return self._out.read_text()

    def points_while_draining(self) -> list[Point]:
        """The points that it reached after it had heard the signal; known once it ended in order."""
        return [Point(name) for name in json.loads(self.told)["while_draining"]]


class Started(Child):
    """A process of its own program."""

    def __init__(self, arguments: list[str], *, env: dict[str, str], folder: Path, name: str) -> None:
        super().__init__(folder, name)
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(arguments, env=env, stdout=out, stderr=err)

    def ended(self, *, within_s: float = END_S) -> int:
        return self._process.wait(within_s)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def stands_still(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, number: int) -> None:
        self._process.send_signal(number)
