"""Whether a folder can serve as a sink, found out by doing what a delivery does: make, write, flush, link, remove.

Permissions alone do not tell: a read-only or full file system, one without hard links and a folder of the kernel's own refuse all the same.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from coatcheck.delivery.file_sink import INCOMING, closing, open_folder
from coatcheck.seams import Seams

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def trouble_of(root: Path, *, seams: Seams, keep_folders: bool) -> str | None:
    """What the system said to the try, as `Permission denied`; None for a folder that serves.

    Without `keep_folders` the folders that were made for the try are removed as well.
    """
    name = f"trial-{seams.ids.uuid7()}.part"
    try:
        with _made(root.resolve(), keep_folders=keep_folders) as (folder, incoming):
            _write(incoming, name)
            try:
                os.link(name, f".{name}", src_dir_fd=incoming, dst_dir_fd=folder, follow_symlinks=False)
                os.unlink(f".{name}", dir_fd=folder)
            finally:
                os.unlink(name, dir_fd=incoming)
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


@contextmanager
def _made(root: Path, *, keep_folders: bool) -> Iterator[tuple[int, int]]:
    """Descriptors of the root and of the folder for temporaries."""
    missing = [each for each in (root / INCOMING, root, *root.parents) if not each.exists()]
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with closing(os.open(root, flags)) as folder, closing(open_folder(folder, INCOMING)) as incoming:
            yield folder, incoming
    finally:
        for each in () if keep_folders else missing:
            # Whatever somebody else has put there meanwhile keeps it.
            with suppress(OSError):
                each.rmdir()


def _write(folder: int, name: str) -> None:
    with closing(os.open(name, _FLAGS, 0o600, dir_fd=folder)) as file:
        os.write(file, b"\0")
        os.fsync(file)
