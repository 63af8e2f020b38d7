"""A blocking transaction whose commit was seen, or `CommitUnknown`: never a guess, and never "nothing changed" when something may have.

A commit is a remote call. It is unknown when the connection is lost, to the server or to a pooler before it (class 08), and when the server
warns (01000) that no standby confirmed it. A server that ends a session with an error of its own has not committed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from coatcheck.errors import CommitUnknown
from coatcheck.store.db import WARNED
from coatcheck.store.failures import meaning
from coatcheck.store.statements import statement


@contextmanager
def committing(connection: psycopg.Connection[Any], *, confirms: bool = False) -> Iterator[None]:
    """The block's transaction on a connection in autocommit. Raises what psycopg raises, and `CommitUnknown`.

    `confirms`: a standby must confirm it even if it only read, so that what it read is there to stay.

        with connected(url, "enqueue") as connection, committing(connection):
            enqueue_sync(connection, request)
    """
    warnings: list[str | None] = []
    connection.add_notice_handler(lambda diagnostic: warnings.append(diagnostic.sqlstate))
    try:
        with connection.transaction():
            yield
            if confirms:
                connection.execute(statement("store", "ask_for_confirmation").encode())
    except psycopg.Error as error:
        if isinstance(known := meaning(error), CommitUnknown):
            raise known from error
        raise
    if WARNED in warnings:
        raise CommitUnknown(
            "it was committed, and a standby may not have it", next="look for what the command would have written"
        )
