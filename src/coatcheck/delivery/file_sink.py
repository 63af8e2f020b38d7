"""A folder as a sink: written beside, flushed, then linked to its final name, so that no crash shows half an object.

Names are opened one folder at a time from the root's descriptor and never through a symbolic link, so nothing planted in the tree can
lead a write out of it. Blocking calls run on threads of the sink's own: a slow disk delays neither the event loop nor name resolution.
"""

import asyncio
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeVar

from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.delivery.sink import Place
from coatcheck.seams import Seams

Result = TypeVar("Result")

INCOMING = ".incoming"
BUFFERED_BYTES: Final = 64 * 1024
"""The most of an output that an upload keeps in memory before it makes a temporary."""
_TEMPORARY = ".part"
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO})
"""Of opening a symbolic link, and a socket."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileSink:
    """Objects as `<root>/<tenant hash>/<operation_id>/<index>-<sha256>.<extension>`, temporaries in `<root>/.incoming`.

    One call: `FileSink(Path("/var/lib/outputs"), seams=Seams.real())`. The file system must know hard links.
    """

    def __init__(self, root: Path, *, seams: Seams, threads: int = 4) -> None:
        self.root = root.resolve()
        self._seams = seams
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="coatcheck-sink")

    def begin(self, place: Place) -> "FileUpload":
        """An upload for `place`. Its temporary is made when there is more than `BUFFERED_BYTES` of it, or by publishing it."""
        return FileUpload(self, place, f"{place.operation_id}-{place.index}-{self._seams.ids.uuid7()}{_TEMPORARY}")

    async def sweep(self, older_than_s: float) -> int:
        """Remove temporaries that a killed process left, untouched for `older_than_s` seconds, and return how many."""
        return await self.run(lambda: self._sweep(self._seams.clock.now().timestamp() - older_than_s))

    async def run(self, blocking: Callable[[], Result]) -> Result:
        """Run `blocking` on a thread of the sink, to its end even when the caller is cancelled. Raises `Stopped` for OSError."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, blocking)
        running.add_done_callback(_heard)
        try:
            return await asyncio.shield(running)
        except OSError as error:
            reason = Reason.SINK_FULL if error.errno in _FULL else Reason.SINK_FAILED
            raise Stopped(reason, f"{errno.errorcode.get(error.errno or 0, 'unknown')}: {error.strerror}") from None

    @contextmanager
    def opened_root(self) -> Iterator[int]:
        """A descriptor of the root, which is made when missing."""
        with closing(self._root()) as root:
            yield root

    def _root(self) -> int:
        try:
            return os.open(self.root, _FOLDER_FLAGS)
        except FileNotFoundError:
            missing = [self.root, *takewhile(lambda parent: not parent.exists(), self.root.parents)]
            self.root.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            for made in missing:
                with closing(os.open(made.parent, _FOLDER_FLAGS)) as above:
                    os.fsync(above)
            return os.open(self.root, _FOLDER_FLAGS)

    def _sweep(self, before: float) -> int:
        count = 0
        with self.opened_root() as root, closing(open_folder(root, INCOMING)) as incoming:
            for name in os.listdir(incoming):  # noqa: PTH208 - a descriptor, not a path
                with suppress(FileNotFoundError):
                    found = os.lstat(name, dir_fd=incoming)
                    if name.endswith(_TEMPORARY) and stat.S_ISREG(found.st_mode) and found.st_mtime < before:
                        os.unlink(name, dir_fd=incoming)
                        count += 1
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Temporary:
    """Descriptors of an open temporary and of its folder."""

    folder: int
    file: int


class FileUpload:
    """One temporary on its way to its name. The lock makes a discard wait for what a cancelled caller left running.

    A small output stays in memory until it is published, and takes one turn on a thread in place of four (decision 34).
    The temporary is a thread's, under the lock; all else is the event loop's, though a thread looks whether it was discarded.
    """

    def __init__(self, sink: FileSink, place: Place, temporary: str) -> None:
        self._sink = sink
        self._place = place
        self._name = temporary
        self._lock = threading.Lock()
        self._buffer = b""
        self._temporary: _Temporary | None = None
        self._may_have_left = False
        """Whether a thread was or is at it, so that there may be a temporary."""
        self._is_over = False
        self._discarded = False

    async def write(self, data: bytes) -> None:
        """Append `data`, to what is kept in memory or to the temporary. Raises `Stopped`, also once it was published or discarded."""
        self._check_open()
        pending, self._buffer = self._buffer + data, b""
        if not self._may_have_left and len(pending) <= BUFFERED_BYTES:
            self._buffer = pending
            return
        await self._run(lambda: self._write(pending))

    async def publish(self, *, sha256: str, bytes_count: int, extension: str) -> str:
        """Flush the temporary, link it to its final name, flush the folders above it and remove it; returns a `file:///…` URI."""
        self._check_open()
        self._is_over = True
        name = self._place.file_name(sha256, extension)
        pending, self._buffer = self._buffer, b""
        await self._run(lambda: self._publish(pending, name, sha256, bytes_count))
        self._may_have_left = False
        return (self._sink.root / self._place.tenant_folder / self._place.operation_id / name).as_uri()

    async def discard(self) -> None:
        """Close and remove the temporary, where there may be one."""
        self._is_over = self._discarded = True
        self._buffer = b""
        if self._may_have_left:
            with suppress(Stopped):
                await self._run(self._discard)

    def _check_open(self) -> None:
        # what is linked already is not to be written to, nor linked under another name
        if self._is_over:
            raise Stopped(Reason.SINK_FAILED, "the upload was published or discarded before")

    async def _run(self, blocking: Callable[[], None]) -> None:
        self._may_have_left = True
        await self._sink.run(blocking)

    def _write(self, data: bytes) -> None:
        with self._lock:
            if not self._discarded:
                self._append(data)

    def _append(self, data: bytes) -> _Temporary:
        if self._temporary is None:
            self._temporary = self._made()
        left = memoryview(data)
        while left:
            left = left[os.write(self._temporary.file, left) :]
        return self._temporary

    def _made(self) -> _Temporary:
        with self._sink.opened_root() as root:
            folder = open_folder(root, INCOMING)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return _Temporary(folder=folder, file=os.open(self._name, flags, _FILE_MODE, dir_fd=folder))
        except OSError:
            os.close(folder)
            raise

    def _publish(self, data: bytes, name: str, sha256: str, bytes_count: int) -> None:
        with self._lock:
            if self._discarded:
                raise Stopped(Reason.SINK_FAILED, "discarded before it was published")
            temporary = self._append(data)
            os.fsync(temporary.file)
            self._link(temporary, name, sha256, bytes_count)
            # what has its name is stored; a temporary that cannot be removed is for `sweep`
            with suppress(OSError):
                self._remove()

    def _link(self, temporary: _Temporary, name: str, sha256: str, bytes_count: int) -> None:
        if os.fstat(temporary.file).st_size != bytes_count:
            raise Stopped(Reason.SINK_FAILED, f"{bytes_count} bytes were named, and others were written")
        with (
            self._sink.opened_root() as root,
            closing(open_folder(root, self._place.tenant_folder)) as tenant,
            closing(open_folder(tenant, self._place.operation_id)) as folder,
        ):
            try:
                os.link(self._name, name, src_dir_fd=temporary.folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                _check_existing(folder, name, sha256, bytes_count)
            # From leaf to root, made by us or not: another process may have made a folder and not flushed it yet.
            for descriptor in (folder, tenant, root):
                os.fsync(descriptor)

    def _discard(self) -> None:
        with self._lock:
            self._remove()

    def _remove(self) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            with closing(temporary.folder), closing(temporary.file), suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=temporary.folder)


def open_folder(parent: int, name: str) -> int:
    """A descriptor of a folder in `parent`, made when missing; a symbolic link in its place is an OSError."""
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, _FOLDER_MODE, dir_fd=parent)
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """The descriptor, closed at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check_existing(folder: int, name: str, sha256: str, bytes_count: int) -> None:
    """The name is content-addressed, but a name proves nothing: read the bytes. Never through a link, never waiting on a pipe."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        raise Stopped(Reason.SINK_CONFLICT, "what has the object's name is no file") from None
    with closing(descriptor):
        found = os.fstat(descriptor)
        same = stat.S_ISREG(found.st_mode) and found.st_size == bytes_count
        if not same or _digest(descriptor) != sha256:
            raise Stopped(Reason.SINK_CONFLICT, "an object of this name exists with other bytes")
        os.fsync(descriptor)


def _digest(descriptor: int) -> str:
    with open(descriptor, "rb", closefd=False) as existing:
        return hashlib.file_digest(existing, "sha256").hexdigest()


def _heard(running: asyncio.Future[Any]) -> None:
    """What became of a call whose caller was cancelled is nobody's: asyncio would report that nobody asked."""
    if not running.cancelled():
        running.exception()
