"""What every part of the story is told from, and what it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from coatcheck.app.story.wording import instant
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Operation

Row = Mapping[str, Any]
Kept = Mapping[str, Sequence[Row]]
"""What `store.operations.story` reads: dispatches, messages, incidents, history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A heading and its lines. One that begins with `coatcheck ` is a command to copy, one that begins with a space an entry of a list."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Whose story it is, as of when, and for whose eyes."""

    operation: Operation
    kept: Kept
    now: datetime
    for_tenant: bool

    @property
    def name(self) -> str:
        """The operation's id as people know it."""
        return operation_text(self.operation.operation_id)

    @property
    def course(self) -> Row | None:
        """The message of lane 0: what is due next, if anything."""
        return next((message for message in self.kept["messages"] if message["lane"] == 0), None)

    @property
    def present(self) -> Row | None:
        """The dispatch that the operation stands on."""
        return next((row for row in self.kept["dispatches"] if row["dispatch_id"] == self.operation.dispatch_id), None)

    @property
    def is_stalled(self) -> bool:
        """Whether looking at the remote job was given up although it is not final."""
        course = self.course
        return course is not None and course["park_reason"] == "stalled" and not self.operation.is_final

    def last(self, *events: str) -> Row | None:
        """The latest entry of the history about one of these events."""
        return next((entry for entry in reversed(self.kept["history"]) if entry["event"] in events), None)

    def at(self, when: datetime) -> str:
        """An instant with its distance from now."""
        return instant(when, self.now)
