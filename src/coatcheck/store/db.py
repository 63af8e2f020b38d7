"""One connection, one statement, one commit: no transaction of ours can be open across a remote call.

Every statement runs in autocommit, so it is its own transaction and its end is a commit. A commit is a remote call: when the connection
breaks, or the server warns (01000) that a standby did not confirm, its outcome is unknown and `CommitUnknown` says so.
"""

import asyncio
import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.arrays import literal
from coatcheck.store.reaching import unreachable
from coatcheck.store.statements import numbered, statement

Row = dict[str, Any]


class Plan(enum.Enum):
    """How a statement is planned."""

    AUTO = enum.auto()
    """Prepared when it is first run; PostgreSQL chooses between a plan for these parameters and one for any."""
    FRESH = enum.auto()
    """For these very parameters, each time."""
    GENERIC = enum.auto()
    """For any parameters. Said to the session, so it goes for what else is prepared there; not behind a pooler."""


CONNECT_TIMEOUT_S = 5
OPTIONS: Mapping[str, Any] = {
    # both are needed: without keepalives a reply that never comes hangs for ever (measured)
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "connect_timeout": CONNECT_TIMEOUT_S,
}
WARNED = "01000"
"""The class of a warning: the commit stands here, and a standby may not have it."""
SLOW_S = 0.1
"""A statement that took longer may have a plan that was made for a table of another size, so its session plans anew: an outbox that autovacuum
found empty is supposed to have one row, and what was planned then reads all of it for each row that comes later (measured: 4 s at 100,000)."""
PLANS_LAST_S = 1.0
"""For so long at least a session keeps its plans: what is slow for another reason does not make all of them anew each time."""
GENERIC_SLOW_S = 0.02
"""In a session that plans for any parameters a statement that took so much longer than the quickest one there is doubted, too: such a plan may read
a table through that was small (measured: 46 ms for a hundred rows). But it may merely be large, so"""
GENERIC_PLANS_LAST_S = 5.0
"""for so long at least the session keeps its plans all the same."""
YOUNG: Final = frozenset({8, 32, 128, 512})
"""After so many statements a session plans anew, however quick they were: in a new installation tables grow from nothing, what was planned when they
were small reads them through once for each batch, and autovacuum may be a minute away from saying that they have grown."""
_OUTLAST_TRIES, _OUTLAST_PAUSE_S = 40, 0.05


class Trouble(enum.Enum):
    """What a failed statement calls for."""

    BAD_ROW = enum.auto()
    """A value or a constraint: halve the batch until the bad row is alone."""
    AGAIN = enum.auto()
    """Serialisation or deadlock: the same batch again."""
    LOCKED = enum.auto()
    """A lock was not to be had in time: put the rows back."""
    UNKNOWN = enum.auto()
    """Connection, shutdown or an unknown commit: find out what is there."""
    DEFECT = enum.auto()
    """Anything else is ours to mend."""


_BY_CLASS = {
    **dict.fromkeys(("22", "23"), Trouble.BAD_ROW),
    "40": Trouble.AGAIN,
    **dict.fromkeys(("08", "25", "53", "57", "58", "XX"), Trouble.UNKNOWN),
}


def trouble(error: Exception) -> Trouble:
    """Read a failure by its SQLSTATE class, never by its text."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        broken = isinstance(error, CommitUnknown | Unavailable | psycopg.OperationalError | psycopg.InterfaceError)
        return Trouble.UNKNOWN if broken else Trouble.DEFECT
    if state == "55P03":
        return Trouble.LOCKED
    return _BY_CLASS.get(state[:2], Trouble.DEFECT)


class Database:
    """A connection that is opened when it is needed and opened anew after it broke; one statement at a time.

    Example: `rows = await Database(url, seams=seams, name="reader").fetch(text, {"operation_id": ids})`.
    """

    def __init__(self, url: str, *, seams: Seams, name: str) -> None:
        self._url = url
        self._seams = seams
        self._name = name
        self._connection: psycopg.AsyncConnection[Row] | None = None
        self._turn = asyncio.Lock()
        self._warned = False
        self._session = 0
        self._is_told = False
        self._is_generic = False
        self._quickest_s = inf
        self._planned_at = 0.0
        self._statement_count = 0
        self._plans_are_old = False
        self._lost_sessions: set[int] = set()

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        """Run one statement in its own transaction.

        Raises psycopg errors, `CommitUnknown`, or `Unavailable` (nothing was sent).
        """
        async with self._turn:
            connection = await self._open()
            self._warned = False
            began = self._seams.clock.boottime()
            try:
                await self._plan(connection, plan)
                cursor = await _executed(connection, text, parameters, prepare=plan is not Plan.FRESH)
                # a description of the columns would be made for this alone
                rows: Sequence[Row] = [] if cursor.rownumber is None else await cursor.fetchall()
            except BaseException as error:
                await self._after(error)
                raise
            finally:
                # also of what failed: a limit of its role's may have ended what a bad plan would never have
                if plan is not Plan.FRESH:
                    self._learn(began)
        if self._warned:
            message = "the server committed locally and warned that a standby may not have it"
            raise CommitUnknown(message, next="Look for what the statement would have written.")
        return rows

    async def _plan(self, connection: psycopg.AsyncConnection[Row], plan: Plan) -> None:
        """What the session has to be told before the statement."""
        if self._plans_are_old:
            await _executed(connection, statement("store", "discard_plans"), None, prepare=False)
            self._plans_are_old = False
        if plan is Plan.GENERIC and not self._is_told:
            told = await _executed(connection, statement("store", "plan_for_any"), {"pid": self._session})
            self._is_told, self._is_generic = True, told.rowcount == 1

    def _learn(self, began: float) -> None:
        """Whether what is kept of plans took too long, or may be of tables that were small."""
        self._statement_count += 1
        self._plans_are_old = self._plans_are_old or self._statement_count in YOUNG
        now = self._seams.clock.boottime()
        took_s = now - began
        self._quickest_s = min(self._quickest_s, took_s)
        if took_s > SLOW_S:
            lasts_s = PLANS_LAST_S
        elif self._is_generic and took_s - self._quickest_s > GENERIC_SLOW_S:
            lasts_s = GENERIC_PLANS_LAST_S
        else:
            return
        if now - self._planned_at > lasts_s:
            self._plans_are_old, self._planned_at = True, now

    async def outlast(self) -> None:
        """Wait until the sessions of connections that broke have ended: till then they may carry out what they were sent.

        Two seconds at most, for a server that cannot know of the break keeps such a session for long; and behind a pooler it is not found.
        Raises as `fetch` does.
        """
        text = statement("store", "find_sessions")
        for _ in range(_OUTLAST_TRIES):
            if not self._lost_sessions:
                return
            rows = await self.fetch(text, {"pid": list(self._lost_sessions), "name": _application(self._name)})
            self._lost_sessions &= {row["pid"] for row in rows}
            if self._lost_sessions:
                await self._seams.sleep(_OUTLAST_PAUSE_S)
        self._lost_sessions.clear()

    async def _after(self, error: BaseException) -> None:
        """A connection that a failure or a cancellation may have left half-way is not used again."""
        statement_failed = isinstance(error, psycopg.Error) and error.sqlstate is not None
        connection = self._connection
        if connection is not None and (not statement_failed or connection.broken or connection.closed):
            self._connection = None
            self._lost_sessions.add(self._session)
            await connection.close()
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not statement_failed:
            raise CommitUnknown(
                "the connection to PostgreSQL broke during a statement", next="It is looked for."
            ) from error

    async def _open(self) -> psycopg.AsyncConnection[Row]:
        if self._connection is None or self._connection.closed:
            self._connection = await connect(self._url, self._name)
            self._connection.add_notice_handler(self._notice)
            # asked while it is open: of a connection that broke, libpq no longer tells
            self._session = self._connection.info.backend_pid
            self._is_told = self._is_generic = self._plans_are_old = False
            self._quickest_s = inf
            self._statement_count = 0
            self._planned_at = self._seams.clock.boottime()
        return self._connection

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        self._warned = self._warned or diagnostic.sqlstate == WARNED

    async def close(self) -> None:
        """Close the connection; a later statement opens a new one."""
        async with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.close()


async def _executed(
    connection: psycopg.AsyncConnection[Row], text: str, parameters: Mapping[str, Any] | None, *, prepare: bool = True
) -> psycopg.AsyncCursor[Row]:
    cursor = psycopg.AsyncRawCursor(connection)
    if parameters is None:
        return await cursor.execute(text.encode(), prepare=prepare)
    sent, names = numbered(text)
    return await cursor.execute(sent, [_sent(parameters[name]) for name in names], prepare=prepare)


def _sent(value: object) -> object:
    """A column goes as text that is ready; everything else is the driver's to write."""
    return value if not isinstance(value, list) else literal(value) or value


def _application(name: str) -> str:
    return f"coatcheck {name}"


async def connect(url: str, name: str) -> psycopg.AsyncConnection[Row]:
    """Open an autocommit connection. Raises `Unavailable` when the server cannot be reached; its text shows neither user nor password."""
    try:
        return await psycopg.AsyncConnection.connect(
            url, autocommit=True, row_factory=dict_row, application_name=_application(name), **OPTIONS
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error, url) from None


@asynccontextmanager
async def opened(url: str, *, seams: Seams, name: str) -> AsyncIterator[Database]:
    """A database for the length of a block."""
    database = Database(url, seams=seams, name=name)
    try:
        yield database
    finally:
        await database.close()
