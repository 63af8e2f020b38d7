"""What the database says of a measurement: one connection, statements of this room's own, rows as values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from coatcheck.bench import processes
from coatcheck.errors import Refused
from coatcheck.store.blocking import connected
from coatcheck.store.statements import statement

PROVIDER = "bench"
TENANTS = 3
"""Several, because that is what the product is for: a worker that serves several begins less at once, so that none waits for another's crowd."""
_BATCH = 1_000
_FROM_18 = "select sum(fsync_time)::float8 / 1000 from pg_stat_io where object = 'wal'"
_BEFORE_18 = "select (to_jsonb(wal) ->> 'wal_sync_time')::float8 / 1000 from pg_stat_wal as wal"
_18 = 180_000
_POSTGRES = ("postgres", "postmaster")
_FILLED = (
    "operations",
    "specifications",
    "outbox",
    "dispatches",
    "remote_jobs",
    "snapshots",
    "deliveries",
    "history",
    "incidents",
)
_CLEARED = f"truncate {', '.join(f'coatcheck.{name}' for name in _FILLED)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What PostgreSQL this is; `pid` of its first process, where it runs on this machine and that can be seen."""

    version: str
    version_number: int
    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What PostgreSQL has counted so far."""

    transaction_count: int
    row_count: int
    wal_bytes: int
    image_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Lanes that are left: all, those still to be dispatched, those that are observed, and of these those that were looked at in vain."""

    lane_count: int
    prepared_count: int
    observed_count: int
    looked_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycles:
    """What became of the operations, and the seconds from the first mark to the last save."""

    operation_count: int
    delivered_count: int
    lane_count: int
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """What workers have in hand, and in how many seconds the last of those leases ends."""

    watched_count: int
    sending_count: int
    doubt_count: int
    looks_end_s: float | None
    posts_end_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One enqueued operation."""

    operation_id: str
    specification_hash: str


class Books:
    """One connection's view. Example: `with opened(url) as books: books.enqueue("warm", 100)`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._server: Server | None = None

    def enqueue(
        self, prefix: str, count: int, *, first: int = 1, more: str = "", tenants: int = TENANTS
    ) -> Sequence[Asked]:
        """Operations number `first` and following, committed by the thousand; `more` is JSON behind the prompt, as `,"sim":{}`."""
        asked: list[Asked] = []
        for begin in range(first, first + count, _BATCH):
            parameters = {
                "first": begin,
                "last": min(first + count, begin + _BATCH) - 1,
                "tenants": tenants,
                "prefix": prefix,
                "provider": PROVIDER,
                "more": more,
            }
            asked += [Asked(**row) for row in self._rows(statement("bench", "enqueue"), parameters)]
        return asked

    def crowd(self, first: int, last: int) -> None:
        """Operations that are over."""
        parameters = {"first": first, "last": last, "tenants": TENANTS, "provider": PROVIDER}
        self._connection.execute(statement("bench", "crowd"), parameters)

    def analyze(self) -> None:
        """Let the planner know, as autovacuum would a little later."""
        self._connection.execute("vacuum (analyze) coatcheck.operations, coatcheck.specifications, coatcheck.outbox")

    def check_unused(self) -> None:
        """Raises `Refused` for a database that somebody uses."""
        (row,) = self._rows(statement("bench", "is_used"))
        if row["has_operations"] or row["has_workers"]:
            found = "operations in it" if row["has_operations"] else "a worker that reported a moment ago"
            raise Refused(
                f"expected a database without operations and workers, got one with {found}: a measurement clears its tables",
                next="name an empty database, or leave --database-url out: then it is an embedded one",
            )

    def clear(self) -> None:
        """Forget the operations that were measured."""
        self._connection.execute(_CLEARED.encode())

    def leave(self, since: datetime) -> None:
        """Forget them, the name that they were sent to, and the workers that began since then."""
        self.clear()
        self._connection.execute("delete from coatcheck.providers where name = %s", (PROVIDER,))
        self._connection.execute("delete from coatcheck.accounts where account = %s", (PROVIDER,))
        self._connection.execute("delete from coatcheck.workers where started_at >= %s", (since,))

    def now(self) -> datetime:
        """By the server's clock."""
        (row,) = self._rows("select now() as now")
        now: datetime = row["now"]
        return now

    def counters(self) -> Counters:
        """What is counted by now."""
        return Counters(**self._rows(statement("bench", "counters"))[0])

    def session_count(self) -> int:
        """Sessions of workers that are still there."""
        count: int = self._rows(statement("bench", "sessions"))[0]["session_count"]
        return count

    def progress(self) -> Progress:
        """How far it has come."""
        return Progress(**self._rows(statement("bench", "progress"))[0])

    def lifecycles(self) -> Lifecycles:
        """What became of the operations."""
        return Lifecycles(**self._rows(statement("bench", "lifecycles"))[0])

    def leased(self, worker: str) -> Leased:
        """What is in hand, of looks those of this worker."""
        return Leased(**self._rows(statement("bench", "leased"), {"worker": worker})[0])

    def ended_count(self) -> int:
        """Ends of POSTs that are saved."""
        count: int = self._rows(statement("bench", "dispatched"))[0]["ended_count"]
        return count

    def accepted(self) -> Mapping[str, str]:
        """The hash of each accepted operation's specification."""
        rows = self._rows(statement("bench", "accepted"))
        return {row["operation_id"]: row["specification_hash"] for row in rows}

    def server(self) -> Server:
        """What server this is."""
        if self._server is None:
            (row,) = self._rows(statement("bench", "workplace"))
            backend = row["pid"] if row["is_here"] and processes.name(row["pid"]) in _POSTGRES else None
            self._server = Server(
                version=row["version"],
                version_number=row["version_number"],
                pid=None if backend is None else processes.parent(backend),
            )
        return self._server

    def server_cpu_s(self) -> float | None:
        """Processor seconds of the server and its backends; None where it runs elsewhere."""
        pid = self.server().pid
        return None if pid is None else processes.family_cpu_s(pid)

    def flushed_s(self) -> float | None:
        """Seconds that flushes of the log took so far; None where the server does not time them."""
        (timed,) = self._rows("select current_setting('track_wal_io_timing')::boolean as is_timed")
        if not timed["is_timed"]:
            return None
        text = _FROM_18 if self.server().version_number >= _18 else _BEFORE_18
        (row,) = self._rows(text)
        seconds: float | None = next(iter(row.values()))
        return seconds

    def set_images(self, *, kept: bool) -> None:
        """Whether the log keeps images of whole pages. Of the whole server: only where that is ours."""
        self._connection.execute(f"alter system set full_page_writes = {'on' if kept else 'off'}".encode())
        self._connection.execute("select pg_reload_conf()")
        self._connection.execute("checkpoint")

    def _rows(self, text: str, parameters: Mapping[str, object] | None = None) -> Sequence[Mapping[str, Any]]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(text.encode(), parameters or {}).fetchall()


@contextmanager
def opened(url: str) -> Iterator[Books]:
    """A connection in autocommit for the length of a block. Raises `Unavailable` when the server cannot be reached."""
    with connected(url, "bench") as connection:
        yield Books(connection)
