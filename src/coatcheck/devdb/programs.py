"""Runs PostgreSQL's programs to their end: as the server's account, with an environment of our own, never through a shell of ours."""

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from coatcheck.devdb.account import Account
from coatcheck.devdb.binaries import Binaries
from coatcheck.errors import Failed
from coatcheck.seams import Spawn

# Nothing of the caller's environment reaches the server: PGDATA, PGPORT or LD_LIBRARY_PATH would change what runs.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended: its exit code and what it said."""

    code: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The programs of one installation, run as one account."""

    spawn: Spawn
    binaries: Binaries
    account: Account | None
    folder: Path

    def run(self, program: str, *arguments: str, stdin: IO[bytes] | None = None) -> Ended:
        """Run `program` and wait for its end. Raises OSError when the account cannot execute it."""
        # A file takes the output, since the server inherits it from pg_ctl and would keep a pipe open for life.
        with tempfile.TemporaryFile() as output:
            process = self.spawn(
                [str(self.binaries.bin_dir / program), *arguments],
                env=ENVIRONMENT,
                stdin=stdin,
                stdout=output,
                stderr=output,
                user=None if self.account is None else self.account.uid,
                group=None if self.account is None else self.account.gid,
                cwd=str(self.folder),
            )
            code = process.wait()
            output.seek(0)
            return Ended(code=code, said=output.read().decode(errors="replace").strip())

    def done(self, program: str, *arguments: str, stdin: IO[bytes] | None = None) -> str:
        """Run `program`; what it said. Raises `Failed` unless it ended with 0."""
        ended = self.run(program, *arguments, stdin=stdin)
        if ended.code != 0:
            raise Failed(
                f"expected {program} to end with 0, got {ended.code}: {tail(ended.said)}", next=_repeat(program)
            )
        return ended.said

    def major_version(self) -> str:
        """The installation's major version, "18". Raises OSError when the account cannot execute its programs."""
        self.done("initdb", "--version")  # links a library that the server does without, perhaps from another folder
        return self.done("postgres", "--version").split()[2].split(".")[0]


def tail(said: str) -> str:
    """The last lines, where PostgreSQL's programs name the cause."""
    return " | ".join(said.splitlines()[-6:])


def _repeat(program: str) -> str:
    return f"repair what {shlex.quote(program)} names, or set COATCHECK_DATABASE_URL to a database of your own"
