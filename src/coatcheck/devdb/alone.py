"""One run at a time in a folder, by a lock of the kernel: a killed run lets go by dying, and nothing of it has to be cleared away.

The lock is a file of the folder, which its holder may delete with it. Who opened the file before that has a lock on nothing, and is refused.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coatcheck.errors import Failed


@contextmanager
def alone(lock: Path, what: str) -> Iterator[None]:
    """Nobody else is inside such a block with the same file; `what` names the run. Raises `Failed` at once where somebody is.

    Example: `with alone(home / "demo.lock", "demo"):`.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _took(descriptor) or not _is_still(lock, descriptor):
            message = f"expected to be the only {what} in {lock.parent}, got another one that runs"
            raise Failed(message, next="wait for its end, or set another COATCHECK_HOME")
        yield
    finally:
        os.close(descriptor)


def _took(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(lock: Path, descriptor: int) -> bool:
    """Whether the file of that name is the one that is open."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False
