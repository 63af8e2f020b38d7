"""Trying a person's write again as long as nothing of it was sent, and looking for it once something was."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import psycopg

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.db import Trouble, trouble
from coatcheck.store.failures import meaning

PAUSES_S: Final = (0.1, 0.5, 1.0, 2.0, 4.0)
"""After each try: a server that restarts is back by then."""
Answer = TypeVar("Answer")


async def until_seen(attempt: Callable[[bool], Awaitable[Answer]], *, seams: Seams, name: str, look: str) -> Answer:
    """The answer of `attempt(was_sent)`, told whether an earlier try may have been committed: then it looks for that first.

    `look` is the command that shows what became of `name`. Raises `CommitUnknown` where that was never seen, `Unavailable` where nothing changed, and what the database says of the write itself.
    """
    was_sent = False
    for pause_s in PAUSES_S:
        try:
            return await attempt(was_sent)
        except Unavailable:
            if not was_sent:
                raise
        except CommitUnknown:
            was_sent = True
        except psycopg.Error as error:
            if trouble(error) in (Trouble.BAD_ROW, Trouble.DEFECT):
                raise meaning(error) from None
            was_sent = was_sent or trouble(error) is Trouble.UNKNOWN
        await seams.sleep(pause_s)
    if was_sent:
        raise CommitUnknown(
            f"whether the decision about {name} was saved could not be seen",
            next=f"`{look}` shows it once the database is back",
        )
    raise Unavailable("the database was busy with others all the time; nothing changed", next="try again")
