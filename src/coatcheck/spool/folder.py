"""The folder of spools on one host, and the rule of its files: whoever holds the lock of a file may write and end it, and nobody else.

A lock ends with its process, so a file whose lock can be had belongs to a dead owner. A lock counts only while the path still names the
locked file: an owner before may have ended it in between.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self
from uuid import UUID

FOLDER = "spool"
LINES = ".jsonl"
DAMAGED = ".damaged"
_OTHERS_WRITE = 0o022
_OPEN = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """`<home>/spool`, made when it is first needed and open to its account alone."""

    def __init__(self, home: Path) -> None:
        self.path = home / FOLDER

    def prepare(self) -> None:
        """Make it. Raises OSError where it cannot be made, is another account's, or may be written by others."""
        missing = [each for each in (self.path, *self.path.parents) if not each.exists()]
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in missing:
            flush(each.parent)
        status = self.path.stat()
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another account")
        if status.st_mode & _OTHERS_WRITE:
            raise PermissionError(errno.EPERM, "other accounts may write there")

    def files(self, installation: UUID) -> list[Path]:
        """The files with ends of this installation's POSTs, in the order of their names; those of another installation are left alone."""
        return sorted(each for each in self._all(LINES) if each.name.startswith(f"{installation}."))

    def all_files(self) -> list[Path]:
        """The files with ends of POSTs, whatever their installation. Raises OSError where this account may not look."""
        return sorted(self._all(LINES))

    def damaged_files(self) -> list[Path]:
        """What was set aside because lines in it were not whole."""
        return sorted(self._all(DAMAGED))

    def _all(self, suffix: str) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (each for each in self.path.iterdir() if each.suffix == suffix)


class Held:
    """A file whose lock this process holds."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def made(cls, path: Path) -> Self | None:
        """A new file, durable as such. None: somebody ended it before its lock was had. Raises OSError."""
        descriptor = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            flush(path.parent)
            is_ours = _names(path, descriptor)
        except OSError:
            os.close(descriptor)
            raise
        if not is_ours:
            os.close(descriptor)
            return None
        return cls(path, descriptor)

    @classmethod
    def taken(cls, path: Path) -> Self | None:
        """A file whose owner is dead. None: it lives, the file is gone, or it is another account's. Raises OSError for the rest."""
        try:
            descriptor = os.open(path, _OPEN)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = _names(path, descriptor) and os.fstat(descriptor).st_uid == os.geteuid()
        except BlockingIOError:
            is_ours = False
        except OSError:
            os.close(descriptor)
            raise
        if not is_ours:
            os.close(descriptor)
            return None
        return cls(path, descriptor)

    def content(self) -> bytes:
        """Everything in it."""
        with open(self.descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def remove(self) -> None:
        """End it: nothing in it is needed any more."""
        self.path.unlink()

    def set_aside(self) -> None:
        """Keep it under another name, for a person: what is in it was replayed as far as it could be read."""
        self.path.rename(self.path.with_suffix(DAMAGED))
        flush(self.path.parent)

    def close(self) -> None:
        """Give up the lock; what is in the file is for whoever takes it next."""
        os.close(self.descriptor)


def trouble_of(home: Path, *, keep_folder: bool) -> str | None:
    """What the system says to a try to keep a line there, as `Permission denied`; None for a folder that serves.

    Without `keep_folder` a folder that was made for the try is removed again.
    """
    folder = Folder(home)
    missing = [each for each in (folder.path, *folder.path.parents) if not each.exists()]
    trial = folder.path / f"trial-{os.getpid()}"
    try:
        with _left_as_it_was([] if keep_folder else missing):
            folder.prepare()
            trial.unlink(missing_ok=True)
            if (held := Held.made(trial)) is not None:
                try:
                    os.write(held.descriptor, b"\0")
                    os.fsync(held.descriptor)
                finally:
                    held.remove()
                    held.close()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


@contextmanager
def _left_as_it_was(missing: list[Path]) -> Iterator[None]:
    try:
        yield
    finally:
        for each in missing:
            # whatever somebody else has put there meanwhile keeps it
            with suppress(OSError):
                each.rmdir()


def flush(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _names(path: Path, descriptor: int) -> bool:
    """Whether the path still names the open file."""
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
