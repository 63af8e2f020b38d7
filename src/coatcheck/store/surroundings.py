"""What doctor asks of the way to the server: who stands in between, what guards the line, whose clock is right, who keeps dead rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from coatcheck.seams import Clock
from coatcheck.store.db import Row, connect
from coatcheck.store.statements import statement

_GUARDS = ("keepalives", "keepalives_idle", "tcp_user_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """As of one look, with two sessions open at once.

    `is_pooled`: the server calls our session otherwise than it was called when we connected. `is_shared`: two of ours got the same one of
    the server's, or one of ours got two, as only a pooler that lends by the transaction does it. `keeps_prepared`: what
    a session of ours prepared is there in its next statement. `clock_ahead_s`: how far the database's clock is before this host's, at
    least; 0 where the answer's own way may explain it. `hidden_count`: snapshots whose age this role may not see.
    """

    is_pooled: bool
    is_shared: bool
    keeps_prepared: bool
    is_tcp: bool
    guards: Mapping[str, str]
    clock_ahead_s: float
    isolation: str
    snapshot_age_s: float
    hidden_count: int


async def look_around(url: str, clock: Clock) -> Surroundings:
    """Look. Raises what psycopg raises, and `Unavailable` when the server cannot be reached.

    `found = await look_around(url, seams.clock)`
    """
    async with await connect(url, "doctor") as first, await connect(url, "doctor") as second:
        text = statement("store", "inspect_sessions")
        rows: list[dict[str, Any]] = []
        # whom a pooler lends to: the last one that came back, or the one that lay idle for longest
        for connection in (first, first, second):
            before = clock.now()
            row = await (await connection.execute(text)).fetchone()
            rows.append({**(row or {}), "ahead_s": _ahead_s(before, (row or {})["at"], clock.now())})
        pids = [row["backend_pid"] for row in rows]
        is_shared = pids[0] != pids[1] or pids[1] == pids[2]
        parameters = first.info.get_parameters()
        return Surroundings(
            is_pooled=pids[0] != first.info.backend_pid,
            is_shared=is_shared,
            keeps_prepared=not is_shared or await _keeps_prepared(text, first, second),
            is_tcp=not first.info.host.startswith(("/", "@")),
            guards={name: parameters[name] for name in _GUARDS if name in parameters},
            clock_ahead_s=min((row["ahead_s"] for row in rows), key=abs),
            isolation=rows[0]["isolation"],
            snapshot_age_s=rows[0]["snapshot_age_s"],
            hidden_count=rows[0]["hidden_count"],
        )


async def _keeps_prepared(text: str, first: psycopg.AsyncConnection[Row], second: psycopg.AsyncConnection[Row]) -> bool:
    """Both sessions give the statement the same name, so that a pooler which takes no notice of names makes them collide or miss."""
    try:
        for connection in (first, first, second):
            await connection.execute(text, prepare=True)
    except (psycopg.errors.DuplicatePreparedStatement, psycopg.errors.InvalidSqlStatementName):
        return False
    return True


def _ahead_s(before: datetime, at: datetime, after: datetime) -> float:
    """The clock was read somewhere between the two."""
    if at > after:
        return (at - after).total_seconds()
    return min(0.0, (at - before).total_seconds())
