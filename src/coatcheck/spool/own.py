"""A living worker's own spool: lines that it holds in memory, too, until the database has them.

A line is on the disk when `append` returns. Every method blocks, and may be called from any thread.
"""

import errno
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from coatcheck.core.operation import DispatchId
from coatcheck.spool.folder import LINES, Folder, Held
from coatcheck.spool.record import Record, written

ROOM_BYTES = 16 * 1024 * 1024
"""After so much a new file is begun, so that lines which are settled go although others never stop coming."""
_TRIES = 5


@dataclass(slots=True, kw_only=True, eq=False)
class _File:
    held: Held
    size_bytes: int = 0
    open_lines: set[DispatchId] = field(default_factory=set)
    is_spent: bool = False
    """Whether it takes no further line."""


class Spool:
    """One worker's. `installation` names the database that its ends belong to."""

    def __init__(self, folder: Folder, installation: UUID, incarnation: str, *, room_bytes: int = ROOM_BYTES) -> None:
        self.folder = folder
        self._installation = installation
        self._stem = f"{installation}." + re.sub(r"[^\w.-]", "_", incarnation)
        self._room_bytes = room_bytes
        self._files: list[_File] = []
        self._count = 0
        self._closed = False
        self._turn = threading.Lock()

    def append(self, record: Record) -> None:
        """Put a line on the disk, unless it lies there already. Raises OSError, and the next line then gets a file of its own."""
        with self._turn:
            if self._closed:
                raise OSError(errno.EBADF, "the spool is closed")
            if self._holder(record.dispatch_id) is not None:
                return
            file = self._with_room()
            try:
                _write(file, written(record))
            except OSError:
                file.is_spent = True
                self._tidy(file)
                raise
            file.open_lines.add(record.dispatch_id)

    def settle(self, dispatch_id: DispatchId) -> None:
        """The database has it. A file without an open line is emptied."""
        with self._turn:
            file = self._holder(dispatch_id)
            if file is not None:
                file.open_lines.discard(dispatch_id)
                self._tidy(file)

    def let_go(self, dispatch_id: DispatchId) -> None:
        """Nobody in this process saves it any more: leave its file to whoever replays it."""
        with self._turn:
            file = self._holder(dispatch_id)
            if file is not None:
                self._files.remove(file)
                file.held.close()

    def others(self) -> list[Path]:
        """Files of this installation that are not this worker's, whether their owners live or not. Raises OSError.

        On some network file systems a lock alone does not tell one's own.
        """
        with self._turn:
            own = {file.held.path for file in self._files}
        return [path for path in self.folder.files(self._installation) if path not in own]

    def open_lines(self) -> frozenset[DispatchId]:
        """What the database does not have yet."""
        with self._turn:
            return frozenset().union(*(file.open_lines for file in self._files))

    def close(self) -> None:
        """Leave what is open to the next worker, and nothing else."""
        with self._turn:
            self._closed = True
            for file in list(self._files):
                file.is_spent = True
                self._tidy(file)
            for file in self._files:
                file.held.close()
            self._files.clear()

    def _holder(self, dispatch_id: DispatchId) -> _File | None:
        return next((file for file in self._files if dispatch_id in file.open_lines), None)

    def _with_room(self) -> _File:
        if self._files and self._files[-1].size_bytes >= self._room_bytes:
            self._files[-1].is_spent = True
        if not self._files or self._files[-1].is_spent:
            self._files.append(_File(held=self._made()))
        return self._files[-1]

    def _made(self) -> Held:
        self.folder.prepare()
        for _ in range(_TRIES):
            self._count += 1
            made = Held.made(self.folder.path / f"{self._stem}.{self._count}{LINES}")
            if made is not None:
                return made
        raise FileExistsError(f"expected a file of its own, lost {_TRIES} to others")

    def _tidy(self, file: _File) -> None:
        """A file that nobody needs is emptied, or removed when it takes no further line. Failing that, its replay finds nothing to do."""
        if file.open_lines:
            return
        with suppress(OSError):
            if file.is_spent:
                file.held.remove()
            else:
                os.ftruncate(file.held.descriptor, 0)
                file.size_bytes = 0
        if file.is_spent:
            self._files.remove(file)
            file.held.close()


def _write(file: _File, line: bytes) -> None:
    descriptor = file.held.descriptor
    try:
        left = memoryview(line)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    except OSError:
        # half a line would only be reported as damage
        with suppress(OSError):
            os.ftruncate(descriptor, file.size_bytes)
        raise
    file.size_bytes += len(line)
