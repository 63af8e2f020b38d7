"""A primary and the standby that follows it, cloned for each trial from one cold copy; a machine can die, and what follows be promoted.

While the standby is synchronous, no commit of the primary is confirmed that the standby does not have.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import postgres
from coatcheck.devdb import DevPostgres, account, place
from coatcheck.seams import Seams
from coatcheck.store import schema
from faults.copies import promote
from waiting import until

RUN_AS = "nobody"
QUICK = {"wal_retrieve_retry_interval": "50ms", "wal_receiver_timeout": "5s", "max_wal_size": "256MB"}


class Cold:
    """The data folder of a server that was migrated and stopped: every trial begins with it, system identifier included."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self.data = folder / "data"
        server = _server(version, folder / "origin")
        server.start()
        with psycopg.connect(server.url()) as connection:
            schema.migrate_up(connection)
        server.stop()
        _copied(server.data_dir, self.data)
        server.remove()


class Pair:
    """Two machines. `primary` takes writes until it dies; `standby` has all that was confirmed, if it is synchronous."""

    def __init__(self, cold: Cold, folder: Path, *, synchronous: bool) -> None:
        homes = {name: folder / name for name in ("primary", "standby")}
        standbys = "*" if synchronous else ""
        self.primary = _server(cold.version, homes["primary"], synchronous_standby_names=standbys, **QUICK)
        origin = f"host={_place(homes['primary']).sockets} user=postgres application_name=standby"
        self.standby = _server(cold.version, homes["standby"], primary_conninfo=origin, **QUICK)
        for home in homes.values():
            _place(home).ready()
            _copied(cold.data, _place(home).data)
        (_place(homes["standby"]).data / "standby.signal").touch()
        self.primary.start()
        self.standby.start()
        self._wanted = "sync" if synchronous else "async"
        until(self._is_followed)

    @property
    def url(self) -> str:
        """The address that leads to whichever of the two takes writes, for as long as both have one."""
        one, other = (psycopg.conninfo.conninfo_to_dict(server.url()) for server in (self.primary, self.standby))
        hosts, ports = (f"{one[name]},{other[name]}" for name in ("host", "port"))
        return psycopg.conninfo.make_conninfo(
            self.primary.url(), host=hosts, port=ports, target_session_attrs="read-write"
        )

    def primary_dies(self) -> None:
        """Every process of the primary at once, with nothing said to anybody."""
        postmaster = self.primary.pid
        assert postmaster is not None
        # one that stands still makes no further children
        os.kill(postmaster, signal.SIGSTOP)
        for process in (*children(postmaster), postmaster):
            os.kill(process, signal.SIGKILL)
        until(lambda: self.primary.pid is None)

    def standby_is_promoted(self) -> None:
        """Return when it takes writes."""
        promote(self.standby)

    def standby_loses_sight(self) -> None:
        """From now on it receives nothing more; the primary goes on without it unless it is synchronous."""
        with psycopg.connect(self.standby.url(), autocommit=True) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
        until(lambda: self._following() == [])

    def _is_followed(self) -> bool:
        return self._following() == [("streaming", self._wanted)]

    def _following(self) -> list[tuple[str, str]]:
        with psycopg.connect(self.primary.url()) as connection:
            return connection.execute("select state, sync_state from pg_stat_replication").fetchall()

    def close(self) -> None:
        """Nothing is left of either, of a dead one neither: it is started once more, so that it tidies up after itself."""
        for server in (self.standby, self.primary):
            server.start()
            server.remove()


@contextmanager
def paired(cold: Cold, folder: Path, *, synchronous: bool) -> Iterator[Pair]:
    """A pair for one trial."""
    pair = Pair(cold, folder, synchronous=synchronous)
    try:
        yield pair
    finally:
        pair.close()


def _server(version: str, home: Path, **settings: str) -> DevPostgres:
    return DevPostgres(
        home,
        seams=Seams.real(),
        version=version,
        bin_dir=postgres.DEBIAN_15 if version == "15" else None,
        settings={**postgres.SETTINGS, **settings},
        run_as=RUN_AS,
    )


def _place(home: Path) -> place.Place:
    """Where a server of this home keeps its files."""
    return place.chosen(place.locks_folder(home), account.borrowed(RUN_AS))


def _copied(data: Path, target: Path) -> None:
    """With owner and modes; by reference where the file system shares blocks."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(data), str(target)], check=True)


def children(parent: int) -> list[int]:
    """The processes that a process started and that still live."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name before it stands in brackets and may contain anything
            after = status.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(after[1]) == parent:
            found.append(int(status.parent.name))
    return found
