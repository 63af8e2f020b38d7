"""A demo as a process, in a home of its own that is cleared away, and the search for what it may have left running."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams

SMALL = 24
LONGEST_S = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One COATCHECK_HOME. Whatever coatcheck runs there can be told by it: workers by their environment, the server by its folder."""

    home: Path

    @property
    def demo_home(self) -> Path:
        """Where the demo keeps its own."""
        return self.home / "demo"

    def environment(self, home: Path | None = None) -> Mapping[str, str]:
        """This process's, with no other setting of coatcheck than the home."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
        return {**own, "COATCHECK_HOME": str(home or self.home)}

    @property
    def out(self) -> str:
        """What the demo has written on stdout so far."""
        return (self.home / "out.txt").read_text()

    @property
    def err(self) -> str:
        """What it has written on stderr so far."""
        return (self.home / "err.txt").read_text()

    @contextmanager
    def begun(self, *arguments: str, settings: Mapping[str, str] = {}) -> Iterator[subprocess.Popen[bytes]]:
        """`coatcheck demo` at work, in a process group of its own; killed at the end of the block if it still runs."""
        with (self.home / "out.txt").open("wb") as out, (self.home / "err.txt").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "coatcheck", "demo", *arguments],
                env={**self.environment(), **settings},
                cwd=self.home,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def done(self, *arguments: str) -> int:
        """`coatcheck demo` from beginning to end; its exit code."""
        with self.begun(*arguments) as process:
            return process.wait(LONGEST_S)

    def coatcheck(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command, in the home that the demo has used."""
        return subprocess.run(
            [sys.executable, "-m", "coatcheck", *arguments],
            env=self.environment(self.demo_home),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )

    def left_running(self) -> list[str]:
        """Command lines of processes that belong to this home."""
        pointer = self.demo_home / "postgres" / "place"
        marks = [str(self.home).encode(), *([pointer.read_bytes()] if pointer.exists() else [])]
        return [
            _read(process / "cmdline").replace(b"\0", b" ").decode()
            for process in Path("/proc").iterdir()
            if process.name.isdecimal()
            and int(process.name) != os.getpid()
            and any(mark in _read(process / "environ") + _read(process / "cmdline") for mark in marks)
        ]


@contextmanager
def staged(home: Path) -> Iterator[Stage]:
    """A stage whose server is removed at the end, wherever its files lie."""
    stage = Stage(home=home)
    try:
        yield stage
    finally:
        DevPostgres(stage.demo_home, seams=Seams.real()).remove()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile, or is not ours
        return b""
