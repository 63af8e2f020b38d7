"""The command line as people and scripts meet it: a process of its own, in an environment and a folder of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waiting import until

COATCHECK = (sys.executable, "-m", "coatcheck")
SPECIFICATION = b'{"prompt": "a red coat", "seed": 7}'
END_S = 60


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

    def run(self, *words: str, given: bytes = b"", **environ: str) -> Ended:
        """Run a command to its end."""
        ended = subprocess.run(
            [*COATCHECK, *words],
            input=given,
            capture_output=True,
            env={**self.environ, **environ},
            cwd=self.folder,
            timeout=END_S,
            check=False,
        )
        found = Ended(code=ended.returncode, out=ended.stdout.decode(), err=ended.stderr.decode())
        assert "Traceback" not in found.err
        return found

    def enqueue(self, key: str, *words: str, tenant: str = "t1", given: bytes = SPECIFICATION) -> dict[str, Any]:
        """Enqueue, and the operation as JSON."""
        ended = self.run("enqueue", "--tenant", tenant, "--key", key, "-", "--json", *words, given=given)
        assert ended.code == 0, ended.err
        return ended.object

    @contextmanager
    def started(self, *words: str, **environ: str) -> Iterator["Running"]:
        """A command that runs on; it is killed at the end of the block if it is still there."""
        out, err = (self.folder / f"{words[0]}.{name}" for name in ("out", "err"))
        with out.open("wb") as to_out, err.open("wb") as to_err:
            process = subprocess.Popen(
                [*COATCHECK, *words],
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                env={**self.environ, **environ},
                cwd=self.folder,
            )
            try:
                yield Running(process=process, out=out, err=err)
            finally:
                process.kill()
                process.wait()


@dataclass(frozen=True, kw_only=True)
class Running:
    """A command under way."""

    process: subprocess.Popen[bytes]
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
