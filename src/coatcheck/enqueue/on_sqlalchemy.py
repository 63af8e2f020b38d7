"""SQLAlchemy 2: connections and sessions, blocking and asynchronous, over any PostgreSQL driver.

Outside of AUTOCOMMIT SQLAlchemy opens a transaction with the first statement and leaves its commit to the caller.
"""

from typing import Any

from sqlalchemy import Connection, exc, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from coatcheck.enqueue.answer import explained
from coatcheck.enqueue.statement import SQLALCHEMY, no_transaction
from coatcheck.errors import Refused

_STATEMENT = text(SQLALCHEMY)
_REMEDY = """\
with Session(engine) as session, session.begin():  # an engine whose isolation_level is not AUTOCOMMIT
    session.add(order)
    coatcheck.enqueue_sync(session, …)"""


def run(connection: Connection, request: str) -> str:
    """Run the statement in the connection's transaction, which its first statement opens."""
    if connection.dialect.name != "postgresql":
        raise Refused(f"expected a connection to PostgreSQL, got one to {connection.dialect.name}")
    if _is_alone(connection):
        raise no_transaction(_REMEDY)
    try:
        # A connection that streams would leave the function half done until its rows are fetched.
        result = connection.execute(_STATEMENT, {"request": request}, execution_options={"stream_results": False})
        return str(result.scalar_one())
    except exc.PendingRollbackError as error:
        raise explained("25P02") or error from error
    except exc.DBAPIError as error:
        if (known := explained(getattr(error.orig, "sqlstate", None))) is not None:
            raise known from error
        raise


def run_session(session: "Session | scoped_session[Session]", request: str) -> str:
    """The same on the connection that a session's transaction uses."""
    return run(session.connection(), request)


async def run_async(connection: AsyncConnection, request: str) -> str:
    """The same, awaiting."""
    return await connection.run_sync(run, request)


async def run_async_session(session: "AsyncSession | async_scoped_session[AsyncSession]", request: str) -> str:
    """The same, awaiting, on the connection that a session's transaction uses."""
    return await run_async(await session.connection(), request)


def _is_alone(connection: Connection) -> bool:
    """Whether a statement would be a transaction of its own: AUTOCOMMIT, and nobody has sent a BEGIN by hand."""
    borrowed: Any = connection.connection
    if not borrowed.dbapi_connection.autocommit:
        return False
    driver = borrowed.driver_connection
    if hasattr(driver, "is_in_transaction"):
        return not driver.is_in_transaction()
    return str(driver.info.transaction_status.name) == "IDLE" if hasattr(driver, "info") else True
