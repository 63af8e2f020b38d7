"""What waits in the spools of this host, told without touching it: of every installation, whether its owner lives or not."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coatcheck.spool.folder import Folder
from coatcheck.spool.record import Damaged, Foreign, read


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Lines that no database was seen to take, in how many files, since when; and files that were set aside as damaged."""

    line_count: int
    file_count: int
    oldest_at: datetime | None
    damaged: tuple[str, ...]


def surveyed(home: Path) -> Survey:
    """Look. Raises OSError where this account may not."""
    folder = Folder(home)
    contents = [content for content in map(_content, folder.all_files()) if content]
    return Survey(
        line_count=sum(len(content.splitlines()) for content in contents),
        file_count=len(contents),
        oldest_at=min((at for content in contents for at in _instants(content)), default=None),
        damaged=tuple(path.name for path in folder.damaged_files()),
    )


def _content(path: Path) -> bytes:
    """Nothing, where a worker has just ended the file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _instants(content: bytes) -> Iterator[datetime]:
    for line in content.splitlines():
        with suppress(Damaged, Foreign):
            yield read(line).kept_at
