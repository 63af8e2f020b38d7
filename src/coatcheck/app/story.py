"""One operation told to somebody who never saw the code: what happened, what is known of it, what it may cost, what can be done now.

Pure: rows in, sentences out. Whatever others wrote stands in quotation marks with every character that does not print written out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Operation

Rows = Sequence[Mapping[str, Any]]
Kept = Mapping[str, Rows]
"""What `store.operations.story` reads: dispatches, messages, incidents, history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A heading and its sentences. A line that begins with `coatcheck ` is a command to copy, complete but for the words in capitals."""

    title: str
    lines: tuple[str, ...]


def tell(operation: Operation, kept: Kept, *, now: datetime, for_tenant: bool = False) -> tuple[Chapter, ...]:
    """The story as it stands at `now` (the database's clock). For a tenant's eyes nothing of a reply's bytes or request ids is told.

    `tell(operation, await story(database, operation.operation_id), now=operation.read_at)`
    """
    del kept, now, for_tenant
    return (Chapter(title=f"{operation_text(operation.operation_id)} is {operation.phase}", lines=()),)


def flat(chapters: Sequence[Chapter]) -> list[str]:
    """The same as one list of strings: each heading, then its sentences."""
    return [line for chapter in chapters for line in (chapter.title, *chapter.lines)]
