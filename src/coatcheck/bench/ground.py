"""Where one run measures: an embedded PostgreSQL of its own with its durability on, or an empty database that somebody names.

Each measurement begins with no operation in the database and leaves none; each has a service of its own. No coatcheck setting of the caller's
reaches a worker under measure, but the home that holds the embedded server.
"""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from coatcheck.bench import books, hands, service
from coatcheck.bench.books import PROVIDER, Books
from coatcheck.bench.hands import WORKER, Hand
from coatcheck.bench.kernel import cpu_s
from coatcheck.bench.scale import Scale
from coatcheck.bench.service import Service
from coatcheck.bench.surroundings import inherited
from coatcheck.bench.telling import Telling
from coatcheck.bench.usage import SHARED, Reading, Watch
from coatcheck.config.names import provider_variable
from coatcheck.devdb import DevPostgres, alone
from coatcheck.seams import Seams
from coatcheck.store.blocking import connected
from coatcheck.store.schema import migrate_up

_DATABASE = "bench"
_SERVER = {
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    # two readings of a clock at each flush: nothing against what a flush takes
    "track_wal_io_timing": "on",
}


@dataclass(slots=True, kw_only=True)
class Ground:
    """What a measurement is given. `server` is None where the database is somebody's; `throughput` is what the lifecycles brought, once known.

    `incarnations` are the workers so far.
    """

    home: Path
    url: str = field(repr=False)
    server: DevPostgres | None
    scale: Scale
    seams: Seams
    telling: Telling
    throughput: float | None = None
    incarnations: list[str] = field(default_factory=list)

    def books(self) -> AbstractContextManager[Books]:
        """A connection of one's own."""
        return books.opened(self.url)

    def serving(self, **settings: object) -> AbstractContextManager[Service]:
        """A service of one's own."""
        return service.serving(self.home, seams=self.seams, **settings)

    @contextmanager
    def working(self, at: Service, *, command: Sequence[str] = WORKER, **settings: str) -> Iterator[Hand]:
        """A worker for that service; `settings` are coatcheck's, without the common beginning of their names."""
        with hands.working(self.environ(at, **settings), self.home, seams=self.seams, command=command) as hand:
            self.incarnations += hand.incarnations
            yield hand

    @contextmanager
    def working_together(self, at: Service, process_count: int) -> Iterator[Hand]:
        """So many workers of one command for that service."""
        with hands.working(self.environ(at), self.home, seams=self.seams, process_count=process_count) as hand:
            self.incarnations += hand.incarnations
            yield hand

    def environ(self, at: Service, **settings: str) -> Mapping[str, str]:
        """What a worker is told: `WAIT_S` and the like are the provider's, all else is coatcheck's own."""
        own = {"DATABASE_URL": self.url, "HOME": str(self.home / "own"), "SINK": (self.home / "outputs").as_uri()}
        # the simulated renders are short: with the usual two seconds between looks, a short run would measure these
        provider = {"BASE_URL": at.base_url, "API_KEY": "bench-key", "LOOK_MIN_S": "0.05"}
        for name, value in settings.items():
            (own if name.startswith(("CONCURRENCY__", "WAKE")) else provider)[name] = value
        return {
            **inherited(),
            **{f"COATCHECK_{name}": value for name, value in own.items()},
            **{provider_variable(PROVIDER, name): value for name, value in provider.items()},
        }

    def watch(self, reader: Books, **processes: Sequence[int]) -> Watch:
        """What is used from now on, by the processes that are named, PostgreSQL and this one."""
        parties = {name: [_reading(pid) for pid in pids] for name, pids in processes.items()}
        parties |= {SHARED: [reader.server_cpu_s], "bench": [_reading(os.getpid())]}
        return Watch(self.seams.clock, parties, reader.flushed_s)


def _reading(pid: int) -> Reading:
    return lambda: cpu_s(pid)


@contextmanager
def opened(home: Path, *, url: str | None, scale: Scale, seams: Seams, telling: Telling) -> Iterator[Ground]:
    """The ground for one run; `home` is a folder of this command's own, emptied at the end.

    While it lasts, SIGTERM ends this process as Ctrl-C does. Raises `Failed` while another run uses the same home, `Refused` for a database that is used, and what `migrate up` raises.
    """
    with _ended_in_order(), alone(home / "bench.lock", "measurement"):
        server = None if url is not None else _server(home / "postgres", seams)
        try:
            place = _named(server) if server is not None else url or ""
            _prepare(place)
            telling("the database is ready")
            found = Ground(home=home, url=place, server=server, scale=scale, seams=seams, telling=telling)
            if server is not None:
                # a run that was killed may have left its server without them
                with found.books() as books:
                    books.set_images(kept=True)
            try:
                yield found
            finally:
                if server is None:
                    _leave(place, found.incarnations)
        finally:
            if server is not None:
                server.remove()
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _server(home: Path, seams: Seams) -> DevPostgres:
    home.mkdir(parents=True, exist_ok=True)
    return DevPostgres(home, seams=seams, settings=_SERVER).start()


def _named(server: DevPostgres) -> str:
    """The address of a fresh database; a killed run may have left one."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"drop database if exists {_DATABASE} with (force)".encode())
        connection.execute(f"create database {_DATABASE}".encode())
    return server.url(_DATABASE)


def _prepare(url: str) -> None:
    """Make the schema where nobody uses the database. One that is used is not even migrated."""
    with books.opened(url) as reader:
        if reader.has_schema():
            reader.check_unused()
    with connected(url, "bench") as connection:
        migrate_up(connection)
    with books.opened(url) as reader:
        reader.check_unused()


def _leave(url: str, incarnations: Sequence[str]) -> None:
    """Somebody's database is left as empty as it was found, with the schema."""
    with books.opened(url) as reader:
        reader.leave(incarnations)
