"""asyncpg: a connection, or the proxy of one that a pool hands out."""

from typing import Any, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from coatcheck.enqueue.answer import explained
from coatcheck.enqueue.statement import ASYNCPG, no_transaction

_REMEDY = """\
async with connection.transaction():
    await connection.execute("insert into orders …")
    await coat.enqueue(connection, …)"""

Connection: TypeAlias = "asyncpg.Connection[Any] | PoolConnectionProxy[Any]"


async def run_async(connection: Connection, request: str) -> str:
    """Run the statement in the transaction that the caller has opened."""
    # Of a closed connection the driver tells by itself.
    if not connection.is_closed() and not connection.is_in_transaction():
        raise no_transaction(_REMEDY)
    try:
        return str(await connection.fetchval(ASYNCPG, request))
    except asyncpg.PostgresError as error:
        if (known := explained(error.sqlstate)) is not None:
            raise known from error
        raise
