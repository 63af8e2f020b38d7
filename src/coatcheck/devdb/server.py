"""The embedded server as its users see it: started when somebody uses it, shared by all who use the same home, stopped by the last.

Whoever was killed stopped using it by dying. A server that nobody uses any more is an orphan: the next start ends it and starts anew.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from coatcheck.devdb import account, binaries, place, postmaster
from coatcheck.devdb.cluster import DATABASE, OWNER, Cluster
from coatcheck.devdb.hold import Hold
from coatcheck.devdb.programs import Programs
from coatcheck.devdb.reach import executable
from coatcheck.errors import Failed, Refused, install
from coatcheck.seams import Seams

DEFAULTS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    # A specification must not reach the log by way of a failed statement.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}


class DevPostgres:
    """A PostgreSQL server for development, the demo and tests, reached through a socket only.

    `home` is a folder of the caller's; `version` a major version ("18", "16"); `bin_dir` names an installation instead, and then its own
    version counts. `settings` are server parameters over the defaults. As root the server runs as the account `run_as`.

        with DevPostgres(Path(".coatcheck"), seams=Seams.real()) as server:
            psycopg.connect(server.url())
    """

    def __init__(
        self,
        home: Path,
        *,
        seams: Seams,
        version: str = "18",
        bin_dir: Path | None = None,
        settings: Mapping[str, str] = {},
        run_as: str = "nobody",
    ) -> None:
        self._home = home
        self._seams = seams
        self._asked = version
        self._bin_dir = bin_dir
        self._settings = {**DEFAULTS, **settings}
        self._run_as = run_as
        self._hold: Hold | None = None
        self._cluster: Cluster | None = None

    def start(self) -> Self:
        """Make the server if there is none, start it if it does not run, and return when it accepts connections.

        Raises `MissingExtra` without PostgreSQL's programs, `Refused` for a data folder of another version, `Failed` for the rest.
        """
        folder = place.locks_folder(self._home)
        hold = Hold(folder) if self._hold is None else self._hold
        with hold.alone():
            cluster = self._found(folder)
            if hold.unused():
                cluster.clear()
            cluster.serve()
            if not hold.joined:
                hold.join()
        self._hold, self._cluster = hold, cluster
        return self

    def stop(self, mode: str = "fast") -> None:
        """Stop using the server; its last user stops it, in pg_ctl's `mode`. Without a start this does nothing."""
        if self._hold is None or not self._hold.joined:
            return
        with self._hold.alone():
            if self._hold.leave():
                self._started.end(mode)

    def restart(self, mode: str = "immediate") -> None:
        """Stop the server in pg_ctl's `mode` and start it again, under all its users; a dead one is only started.

        Raises `Failed` before the first start and after a stop.
        """
        cluster = self._started
        if self._hold is None or not self._hold.joined:
            raise Failed("expected a server in use, got one that was stopped", next="call start()")
        with self._hold.alone():
            cluster.end(mode)
            cluster.serve()

    def remove(self) -> None:
        """Stop the server and delete everything it kept. Raises `Failed` while another process uses it."""
        self.stop()
        folder = place.locks_folder(self._home)
        hold = Hold(folder)
        with hold.alone():
            if not hold.unused():
                raise Failed("expected to be the server's last user, got another one", next="stop the other process")
            cluster = self._found(folder)
            cluster.clear()
            cluster.place.discard(folder)

    def url(self, database: str = DATABASE) -> str:
        """The address for psycopg, asyncpg and SQLAlchemy. Raises `Failed` unless the server runs."""
        if self.pid is None:
            raise Failed("expected a running server, got one that is stopped", next="call start()")
        sockets = quote(str(postmaster.socket_folder(self.data_dir)), safe="")
        return f"postgresql://{OWNER}@/{quote(database, safe='')}?host={sockets}&port={self._settings['port']}"

    @property
    def version(self) -> str:
        """The server's major version. Raises `Failed` before the first start."""
        return self._started.version

    @property
    def data_dir(self) -> Path:
        """PGDATA. Raises `Failed` before the first start."""
        return self._started.place.data

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it does not run."""
        return None if self._cluster is None else postmaster.running(self._cluster.place.data)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _started(self) -> Cluster:
        if self._cluster is None:
            raise Failed("expected a server that was started, got one that was not", next="call start() first")
        return self._cluster

    def _found(self, folder: Path) -> Cluster:
        lent = account.borrowed(self._run_as)
        files = place.chosen(folder, lent)
        installed = binaries.find(self._asked, self._bin_dir)
        programs = executable(Programs(spawn=self._seams.spawn, binaries=installed, account=lent, folder=files.root))
        version = programs.major_version()
        if self._bin_dir is None and version != self._asked:
            raise Refused(
                f"expected an embedded PostgreSQL {self._asked}, got {version} in {programs.binaries.bin_dir}",
                next=f"set COATCHECK_DATABASE_URL to a database of your own, or {install('demo')}",
            )
        return Cluster(
            place=files,
            programs=programs,
            version=version,
            settings=self._settings,
            pause=self._seams.pause,
            ids=self._seams.ids,
        )
