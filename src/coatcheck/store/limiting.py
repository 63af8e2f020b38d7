"""One transaction that changes a limit: each statement sees what was committed before it began, and no lock is waited for for long.

A limit to what is counted begins while nobody can write a dispatch (`alone`): a writer either committed before the count was read, or
starts after it and finds the row.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, LiteralString

import psycopg

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Faults, Point
from coatcheck.store.db import WARNED, Row, Trouble, connect, trouble
from coatcheck.store.failures import meaning

LOCK_WAIT_S: Final = 5
"""How long a limit that begins waits for the writers under way; marks and replies that come meanwhile queue behind it."""
_PATIENCE: LiteralString = "select set_config('lock_timeout', %(lock_timeout)s, true)"
_ALONE: LiteralString = "lock table coatcheck.dispatches in share row exclusive mode"

Connection = psycopg.AsyncConnection[Row]


@asynccontextmanager
async def changing(url: str, name: str, *, shown_by: str, faults: Faults) -> AsyncIterator[Connection]:
    """A connection of its own with a transaction open, committed at the end of the block. `shown_by`: the command that shows the limit.

        async with changing(url, "budget", shown_by="coatcheck providers list", faults=NO_FAULTS) as connection:
            await alone(connection)

    Raises `Unavailable` where nothing changed and `CommitUnknown` where nobody saw whether it did.
    """
    warned: list[str] = []
    faults.reached(Point.C1_AUTHORISED)
    async with await connect(url, name) as connection:
        connection.add_notice_handler(lambda notice: warned.append(notice.sqlstate or ""))
        # whatever the database's own default is
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        try:
            async with connection.transaction():
                await connection.execute(_PATIENCE, {"lock_timeout": f"{LOCK_WAIT_S}s"})
                yield connection
                faults.reached(Point.C2_COMMAND_COMMIT_SENT)
        except psycopg.Error as error:
            raise _told(error) from None
    if WARNED in warned:
        message = "the server committed locally and warned that a standby may not have it"
        raise CommitUnknown(message, next=f"look at `{shown_by}`; setting the same limit again is harmless")
    faults.reached(Point.C3_APPLIED)


async def alone(connection: Connection) -> None:
    """Wait for the writers of dispatches, and keep others out until the transaction ends."""
    await connection.execute(_ALONE)


def _told(error: psycopg.Error) -> Exception:
    if trouble(error) is Trouble.LOCKED:
        return Unavailable(
            f"expected the writers of dispatches to end within {LOCK_WAIT_S} s, got one that did not",
            next="try again; whoever holds a lock on coatcheck.dispatches for so long is in pg_stat_activity",
        )
    return meaning(error)
