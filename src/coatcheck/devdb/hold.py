"""Who uses a server: locks of the kernel, so that a killed process lets go by dying.

`lock` is held by the one process that starts or stops the server at this moment; `users` is shared by everyone who uses it. Whoever can
take `users` alone is the only one left: at a start, a running server is then an orphan; at a stop, the server may go.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Hold:
    """One user's part in the server of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._users: int | None = None

    @property
    def joined(self) -> bool:
        """Whether this user counts as one of the server's users."""
        return self._users is not None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else starts or stops this server inside the block; waits for whoever does."""
        descriptor = _opened(self._folder / "lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def unused(self) -> bool:
        """Whether no process uses the server. Ask inside `alone`, before `join`."""
        descriptor = _opened(self._folder / "users")
        try:
            return _took(descriptor, fcntl.LOCK_EX)
        finally:
            os.close(descriptor)

    def join(self) -> None:
        """Become one of its users, until `leave` or the end of the process. Inside `alone`."""
        self._users = _opened(self._folder / "users")
        fcntl.flock(self._users, fcntl.LOCK_SH)

    def leave(self) -> bool:
        """Stop being a user; the answer says whether this was the last one. Inside `alone`."""
        if self._users is not None:
            os.close(self._users)
            self._users = None
        return self.unused()


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _took(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
