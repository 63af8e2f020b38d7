"""The whole story: its chapters in the order in which somebody reads them, and those left out that would tell them nothing."""

from collections.abc import Sequence
from datetime import datetime

from coatcheck.app.story.choices import choices_chapter
from coatcheck.app.story.dispatches import dispatch_chapter
from coatcheck.app.story.events import decisions_chapter, incidents_chapter
from coatcheck.app.story.standing import standing_chapter
from coatcheck.app.story.telling import Chapter, Kept, Row, Telling
from coatcheck.app.story.wording import count
from coatcheck.core.operation import Operation, Outcome

_IN_FULL = 5
"""Dispatches that made nothing are told in full up to so many; a service that was away for an hour leaves hundreds of them."""


def tell(operation: Operation, kept: Kept, *, now: datetime, for_tenant: bool = False) -> tuple[Chapter, ...]:
    """The story as it stands at `now` (the database's clock). A tenant is told nothing of replies, request ids and operators' reasons.

    `tell(operation, await story(database, operation.operation_id), now=operation.read_at)`
    """
    telling = Telling(operation=operation, kept=kept, now=now, for_tenant=for_tenant)
    chapters = (
        standing_chapter(telling),
        *_dispatches(telling),
        decisions_chapter(telling),
        incidents_chapter(telling),
        choices_chapter(telling),
    )
    return tuple(chapter for chapter in chapters if chapter is not None)


def flat(chapters: Sequence[Chapter]) -> list[str]:
    """The same as one list of strings: each heading, then its lines."""
    return [line for chapter in chapters for line in (chapter.title, *chapter.lines)]


def _dispatches(telling: Telling) -> tuple[Chapter, ...]:
    """In full what may have made a job, and the last few of those that made none; of the rest how many they were."""
    rows = telling.kept["dispatches"]
    harmless = [row for row in rows if _made_nothing(row)]
    short = harmless[: max(0, len(harmless) - _IN_FULL)]
    told = tuple(dispatch_chapter(telling, row) for row in rows if row not in short)
    return (_in_short(short), *told) if short else told


def _made_nothing(row: Row) -> bool:
    return row["outcome"] in (Outcome.NOT_SENT, Outcome.THROTTLED) and row["remote_job_id"] is None


def _in_short(rows: Sequence[Row]) -> Chapter:
    unsent = sum(row["outcome"] == Outcome.NOT_SENT for row in rows)
    line = (
        f"{count(unsent, 'dispatch', 'es')} never left, which is proven; {len(rows) - unsent} the service put off."
        " None of them made a job or costs anything."
    )
    return Chapter(title=f"Dispatches {rows[0]['number']} to {rows[-1]['number']}, in short", lines=(line,))
