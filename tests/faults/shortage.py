"""A disk that is full when the story says so: a small file system of its own for a server's tables or its log, filled and emptied again.

Where no file system may be mounted, the server's processes may write no file beyond a size instead, which they meet as soon as they write.
"""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Protocol

from coatcheck.devdb import DevPostgres
from failover.pair import children
from faults.away import Away

SIZE = "48m"
"""Enough for a fresh database, or for two segments of log."""
LEAST_BYTES = 64 * 1024


class Shortage(Protocol):
    """What runs out of space. `kind` says how, for the figures."""

    kind: ClassVar[str]

    def begins(self) -> None:
        """From now on nothing more can be written."""

    def ends(self) -> None:
        """There is space again."""


class SmallDisk:
    """A mounted file system, and the ballast in it."""

    kind: ClassVar[str] = "a small tmpfs"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def begins(self) -> None:
        with suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    def ends(self) -> None:
        self._ballast.unlink()


class SmallFiles:
    """A limit on every process of a server. One that was started anew has it no more."""

    kind: ClassVar[str] = "RLIMIT_FSIZE of the server's processes"

    def __init__(self, server: DevPostgres) -> None:
        self._server = server

    def begins(self) -> None:
        self._limited(LEAST_BYTES)

    def ends(self) -> None:
        self._limited(resource.RLIM_INFINITY)

    def _limited(self, size: int) -> None:
        if (postmaster := self._server.pid) is not None:
            for process in (postmaster, *children(postmaster)):
                with suppress(ProcessLookupError):
                    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
                    resource.prlimit(process, resource.RLIMIT_FSIZE, (min(size, hard) if hard >= 0 else size, hard))


@contextmanager
def short_of(what: str, stage: Away) -> Iterator[Shortage]:
    """Something that can run out under the stage's database: of its `tables`, or of its server's `log`."""
    folder = stage.server.data_dir.parent / "small"
    if not _mounted(folder, stage.server.data_dir.stat()):
        yield SmallFiles(stage.server)
        return
    try:
        (_tables_in if what == "tables" else _log_in)(folder, stage)
        yield SmallDisk(folder)
    finally:
        stage.server.stop("immediate")
        _moved_to_the_large_disk(folder)


def _tables_in(folder: Path, stage: Away) -> None:
    stage.leave()
    stage.at_the_server(f"create tablespace small location '{folder}'", "alter database own set tablespace small")
    stage.reconnect()


def _log_in(folder: Path, stage: Away) -> None:
    log = stage.server.data_dir / "pg_wal"
    stage.goes()
    # a server that ended without a checkpoint needs what it has
    _done("cp", "-a", f"{log}/.", str(folder))
    _done("rm", "-r", str(log))
    log.symlink_to(folder)
    os.chown(log, stage.server.data_dir.stat().st_uid, -1, follow_symlinks=False)
    stage.comes()


def _moved_to_the_large_disk(folder: Path) -> None:
    """The server finds all it had in the same place, and the small file system is gone."""
    kept = folder.with_name("kept")
    _done("cp", "-a", str(folder), str(kept))
    _done("umount", str(folder))
    folder.rmdir()
    kept.rename(folder)


def _done(*command: str) -> None:
    subprocess.run(command, check=True)


def _mounted(folder: Path, owner: os.stat_result) -> bool:
    """Whether a small file system could be mounted there, for the server's account."""
    folder.mkdir()
    options = f"size={SIZE},mode=700,uid={owner.st_uid},gid={owner.st_gid}"
    ended = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True, check=False
    )
    return ended.returncode == 0
