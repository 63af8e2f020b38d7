"""The command line as people and scripts meet it: a process of its own, in an environment and a folder of its own.

A command is born in a nursery that has imported all commands, which saves a second of the processor's time and is otherwise the same. What
happens while modules are imported cannot be seen there, so a terminal that is `fresh` starts a new interpreter for each; and every terminal
does where the environment holds something that an interpreter reads at its start.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, Self

from nursery.client import Born, Nursery
from waiting import until

COATCHECK = (sys.executable, "-m", "coatcheck")
SPECIFICATION = b'{"prompt": "a red coat", "seed": 7}'
END_S = 60
COURSE = "cli.command_main"
AT_START = ("PYTHON", "LC_", "LANG", "PSYCOPG_")
"""How names begin that an interpreter reads at its start, or a module when it is imported."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Every line of stdout as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        """The one object on stdout."""
        (found,) = self.objects
        return found

    @property
    def error(self) -> dict[str, str]:
        """The error object: stdout is empty, and it is the last line of stderr."""
        assert self.out == ""
        found: dict[str, str] = json.loads(self.err.splitlines()[-1])
        assert set(found) == {"code", "message", "next"}
        return found


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """Where commands are typed."""

    folder: Path
    environ: Mapping[str, str]

    is_fresh: bool = False
    """Whether each command has an interpreter that was started for it."""

    @property
    def fresh(self) -> Self:
        """The same place, with an interpreter for each command."""
        return replace(self, is_fresh=True)

    def run(self, *words: str, given: bytes = b"", **environ: str) -> Ended:
        """Run a command to its end."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            stdin.write(given)
            stdin.seek(0)
            with self._process(words, environ, (stdin, stdout, stderr)) as process:
                code = process.wait(END_S)
            out, err = (_whole(each) for each in (stdout, stderr))
        assert "Traceback" not in err
        return Ended(code=code, out=out, err=err)

    def enqueue(self, key: str, *words: str, tenant: str = "t1", given: bytes = SPECIFICATION) -> dict[str, Any]:
        """Enqueue, and the operation as JSON."""
        ended = self.run("enqueue", "--tenant", tenant, "--key", key, "-", "--json", *words, given=given)
        assert ended.code == 0, ended.err
        return ended.object

    @contextmanager
    def started(self, *words: str, **environ: str) -> Iterator["Running"]:
        """A command that runs on; it is killed at the end of the block if it is still there."""
        out, err = (self.folder / f"{words[0]}.{name}" for name in ("out", "err"))
        with (
            Path(os.devnull).open("rb") as stdin,
            out.open("wb") as stdout,
            err.open("wb") as stderr,
            self._process(words, environ, (stdin, stdout, stderr)) as process,
        ):
            yield Running(process=process, out=out, err=err)

    @contextmanager
    def _process(
        self, words: tuple[str, ...], changes: Mapping[str, str], streams: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> Iterator[Born | subprocess.Popen[bytes]]:
        """The command as a process that does not outlive the block."""
        environ = {**self.environ, **changes}
        stdin, stdout, stderr = (each.fileno() for each in streams)
        process: Born | subprocess.Popen[bytes]
        if self.is_fresh or _read_at_start(environ) != _read_at_start(os.environ):
            command = [*COATCHECK, *words]
            process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=environ, cwd=self.folder)
        else:
            process = _nursery().child(COURSE, words, env=environ, streams=(stdin, stdout, stderr), folder=self.folder)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, kw_only=True)
class Running:
    """A command under way."""

    process: Born | subprocess.Popen[bytes]
    out: Path
    err: Path

    def said(self, text: str) -> None:
        """Wait until it has said `text` on stderr."""
        until(lambda: text in self.err.read_text() or self.process.poll() is not None)
        assert text in self.err.read_text(), self.err.read_text()

    def ended(self) -> Ended:
        """Wait for its end."""
        code = self.process.wait(END_S)
        return Ended(code=code, out=self.out.read_text(), err=self.err.read_text())


def plain_environ() -> dict[str, str]:
    """This process's environment without settings of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}


@cache
def _nursery() -> Nursery:
    """One for all tests of this process; it ends with it."""
    running = Nursery(COURSE)
    atexit.register(running.close)
    return running


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(AT_START)}


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
