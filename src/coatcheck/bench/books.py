"""What the database says of a measurement: one connection, statements of this room's own, rows as values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from coatcheck.bench import kernel
from coatcheck.errors import Refused
from coatcheck.store.blocking import connected
from coatcheck.store.statements import statement

PROVIDER = "bench"
TENANTS = 3
"""Several, because that is what the product is for: a worker that serves several begins less at once, so that none waits for another's crowd."""
_BATCH = 1_000
_18 = 180_000
_POSTGRES = ("postgres", "postmaster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What PostgreSQL this is; `is_timed`: flushes are. `pid` of its first process, where it runs on this machine and that can be seen."""

    version: str
    version_number: int
    is_timed: bool
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
    """Lanes that are left: all, those still to be dispatched, and those that are observed."""

    lane_count: int
    prepared_count: int
    observed_count: int


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

    def together(self) -> AbstractContextManager[object]:
        """One commit at the end of the block for all that is enqueued in it."""
        return self._connection.transaction()

    def crowd(self, first: int, last: int) -> None:
        """Operations that are over."""
        parameters = {"first": first, "last": last, "tenants": TENANTS, "provider": PROVIDER}
        self._connection.execute(statement("bench", "crowd"), parameters)

    def analyze(self) -> None:
        """Let the planner know, as autovacuum would a little later."""
        self._connection.execute(statement("bench", "analyze").encode())

    def has_schema(self) -> bool:
        """Whether any version of coatcheck's schema is there."""
        found: bool = self._rows(statement("bench", "has_schema"))[0]["has_schema"]
        return found

    def check_unused(self) -> None:
        """Raises `Refused` for a database that somebody uses, of whatever version its schema is."""
        (row,) = self._rows(statement("bench", "is_used"), {"provider": PROVIDER})
        signs = {
            "has_operations": "operations in it",
            "has_workers": "a worker that reported a moment ago",
            "has_provider": f"a provider or an account named {PROVIDER}",
        }
        found = [sign for name, sign in signs.items() if row[name]]
        if found:
            raise Refused(
                f"expected a database that nobody uses, got one with {found[0]}: a measurement clears its tables",
                next="name an empty database, or leave --database-url out: then it is an embedded one",
            )

    def clear(self) -> None:
        """Forget the operations that were measured. Raises `Refused`, and forgets nothing, where there are others by now."""
        with self._connection.transaction():
            self._clear()

    def leave(self, incarnations: Sequence[str]) -> None:
        """Forget them, the name that they were sent to, and these workers. Raises as `clear` does."""
        with self._connection.transaction():
            self._clear()
            parameters = {"provider": PROVIDER, "incarnations": list(incarnations)}
            self._connection.execute(statement("bench", "forget").encode(), parameters)

    def _clear(self) -> None:
        self._connection.execute(statement("bench", "hold").encode())
        if self._rows(statement("bench", "strangers"), {"provider": PROVIDER})[0]["has_strangers"]:
            raise Refused(
                "expected no operations but the measurement's, got others by now: somebody uses this database; nothing was cleared",
                next=f"measure on a database of its own; in this one what was sent to the provider {PROVIDER} is the measurement's",
            )
        self._connection.execute(statement("bench", "clear").encode())

    def counters(self) -> Counters:
        """What is counted by now."""
        return Counters(**self._rows(statement("bench", "counters"))[0])

    def session_count(self) -> int:
        """Sessions that workers hold now."""
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
            backend = row["pid"] if row["is_here"] and kernel.name(row["pid"]) in _POSTGRES else None
            self._server = Server(
                version=row["version"],
                version_number=row["version_number"],
                is_timed=row["is_timed"],
                pid=None if backend is None else kernel.parent(backend),
            )
        return self._server

    def server_cpu_s(self) -> float | None:
        """Processor seconds of the server and its backends; None where it runs elsewhere."""
        pid = self.server().pid
        return None if pid is None else kernel.family_cpu_s(pid)

    def flushed_s(self) -> float | None:
        """Seconds that flushes of the log took so far; None where the server does not time them."""
        server = self.server()
        if not server.is_timed:
            return None
        is_counted_there = server.version_number >= _18
        text = statement("bench", "flushed") if is_counted_there else statement("bench", "flushed_before_18")
        seconds: float | None = self._rows(text)[0]["seconds"]
        return seconds

    def set_images(self, *, kept: bool) -> None:
        """Whether the log keeps images of whole pages. Of the whole server: only where that is ours."""
        text = statement("bench", "keep_images") if kept else statement("bench", "omit_images")
        for each in (text, statement("bench", "reload"), statement("bench", "checkpoint")):
            self._connection.execute(each.encode())

    def _rows(self, text: str, parameters: Mapping[str, object] | None = None) -> Sequence[Mapping[str, Any]]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(text.encode(), parameters or {}).fetchall()


@contextmanager
def opened(url: str) -> Iterator[Books]:
    """A connection in autocommit for the length of a block. Raises `Unavailable` when the server cannot be reached."""
    with connected(url, "bench") as connection:
        yield Books(connection)
