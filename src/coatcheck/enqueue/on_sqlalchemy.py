"""SQLAlchemy 2: connections and sessions, blocking and asynchronous, over any PostgreSQL driver.

Outside of AUTOCOMMIT SQLAlchemy opens a transaction with the first statement and leaves its commit to the caller. Its asynchronous half
needs greenlet, which whoever blocks need not have: nothing of it is imported here.
"""

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, exc, text

from coatcheck.enqueue.answer import explained
from coatcheck.enqueue.statement import SQLALCHEMY, no_transaction
from coatcheck.errors import Refused

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

_STATEMENT = text(SQLALCHEMY)
_IDLE = 0
_REMEDY = """\
with Session(engine) as session, session.begin():  # an engine whose isolation_level is not AUTOCOMMIT
    session.add(order)
    coat.enqueue_sync(session, …)"""


def run(connection: Connection, request: str) -> str:
    """Run the statement in the connection's transaction, which its first statement opens."""
    if connection.dialect.name != "postgresql":
        raise Refused(
            f"expected a connection to PostgreSQL, got one to {connection.dialect.name}",
            next="enqueue on the database that has the schema coatcheck",
        )
    if _is_alone(connection):
        raise no_transaction(_REMEDY)
    try:
        # A connection that streams would leave the function half done until its rows are fetched.
        result = connection.execute(_STATEMENT, {"request": request}, execution_options={"stream_results": False})
        return str(result.scalar_one())
    except exc.PendingRollbackError as error:
        raise explained("25P02") or error from error
    except exc.DBAPIError as error:
        if (known := explained(_sqlstate(error.orig))) is not None:
            raise known from error
        raise


def run_session(session: "Session | scoped_session[Session]", request: str) -> str:
    """The same on the connection that a session's transaction uses."""
    return run(session.connection(), request)


async def run_async(connection: "AsyncConnection", request: str) -> str:
    """The same, awaiting."""
    return await connection.run_sync(run, request)


async def run_async_session(session: "AsyncSession | async_scoped_session[AsyncSession]", request: str) -> str:
    """The same, awaiting, on the connection that a session's transaction uses."""
    return await run_async(await session.connection(), request)


def _is_alone(connection: Connection) -> bool:
    """Whether a statement would be a transaction of its own: AUTOCOMMIT, and nobody has sent a BEGIN by hand."""
    borrowed: Any = connection.connection
    if not getattr(borrowed.dbapi_connection, "autocommit", False):
        return False
    driver = borrowed.driver_connection
    if hasattr(driver, "is_in_transaction"):
        return not driver.is_in_transaction()
    # libpq's number: of psycopg an enumeration of it, of psycopg2 the number itself. A driver that does not tell is taken to be alone.
    return bool(getattr(getattr(driver, "info", None), "transaction_status", _IDLE) == _IDLE)


def _sqlstate(error: object) -> str | None:
    """What PostgreSQL said: psycopg2 has an older name for it."""
    state: str | None = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return state
