"""A blocking transaction whose commit was seen, or `CommitUnknown`: never a guess, and never "nothing changed" when something may have.

A commit is a remote call. It is unknown when the connection is lost, when the server ends the session while it waits for a standby
(class 57), and when it warns (01000) that no standby confirmed it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from coatcheck.errors import CommitUnknown
from coatcheck.store.db import WARNED
from coatcheck.store.statements import statement

_NEXT = "look for what it would have written"
_LOST_CLASS, _ENDED_CLASS = "08", "57"


@contextmanager
def committing(connection: psycopg.Connection[Any], *, confirms: bool = False) -> Iterator[None]:
    """The block's transaction on a connection in autocommit. Raises what psycopg raises, and `CommitUnknown`.

    `confirms`: a standby must confirm it even if it only read, so that what it read is there to stay.

        with connected(url, "enqueue") as connection, committing(connection):
            enqueue_sync(connection, request)
    """
    warnings: list[str | None] = []
    connection.add_notice_handler(lambda diagnostic: warnings.append(diagnostic.sqlstate))
    is_commit = False
    try:
        with connection.transaction():
            yield
            if confirms:
                connection.execute(statement("store", "ask_for_confirmation").encode())
            is_commit = True
    except psycopg.Error as error:
        if _is_unknown(error, is_commit=is_commit):
            raise CommitUnknown(f"nobody saw whether it was committed: {type(error).__name__}", next=_NEXT) from error
        raise
    if WARNED in warnings:
        raise CommitUnknown("it was committed, and a standby may not have it", next=_NEXT)


def _is_unknown(error: psycopg.Error, *, is_commit: bool) -> bool:
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] == _LOST_CLASS or (is_commit and error.sqlstate[:2] == _ENDED_CLASS)
