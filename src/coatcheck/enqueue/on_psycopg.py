"""psycopg 3, blocking and asynchronous."""

from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row

from coatcheck.enqueue.answer import explained
from coatcheck.enqueue.statement import PSYCOPG, no_transaction

_REMEDY = """\
with connection.transaction():
    connection.execute("insert into orders …")
    coat.enqueue_sync(connection, …)"""
_REMEDY_ASYNC = """\
async with connection.transaction():
    await connection.execute("insert into orders …")
    await coat.enqueue(connection, …)"""


def run(connection: psycopg.Connection[Any], request: str) -> str:
    """Run the statement; without autocommit, psycopg itself opens the transaction that the caller will commit."""
    if is_alone(connection):
        raise no_transaction(_REMEDY)
    try:
        # A cursor of our own: the factories of rows and cursors are the owner's.
        with psycopg.Cursor(connection, row_factory=scalar_row) as cursor:
            return str(cursor.execute(PSYCOPG, (request,)).fetchone())
    except psycopg.Error as error:
        if (known := explained(error.sqlstate)) is not None:
            raise known from error
        raise


async def run_async(connection: psycopg.AsyncConnection[Any], request: str) -> str:
    """The same, awaiting."""
    if is_alone(connection):
        raise no_transaction(_REMEDY_ASYNC)
    try:
        async with psycopg.AsyncCursor(connection, row_factory=scalar_row) as cursor:
            return str(await (await cursor.execute(PSYCOPG, (request,))).fetchone())
    except psycopg.Error as error:
        if (known := explained(error.sqlstate)) is not None:
            raise known from error
        raise


def is_alone(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether a statement would be a transaction of its own."""
    return connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE
