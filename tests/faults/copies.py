"""Copies of a database as operators make them: a standby that follows and is promoted, and a dump that is loaded into another cluster."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import postgres
from coatcheck.devdb import DevPostgres, binaries
from coatcheck.seams import Seams
from waiting import until


@contextmanager
def cluster(version: str, home: Path, **settings: str) -> Iterator[DevPostgres]:
    """A server that nobody else's test feels the loss of."""
    server = DevPostgres(
        home,
        seams=Seams.real(),
        version=version,
        bin_dir=_bin_dir(version),
        settings={**postgres.SETTINGS, **settings},
    )
    server.start()
    try:
        yield server
    finally:
        server.remove()


@contextmanager
def standby_of(primary: DevPostgres, version: str, home: Path) -> Iterator[DevPostgres]:
    """A second server that has all of the running `primary` and follows it, asynchronously."""
    with psycopg.connect(primary.url()) as connection:
        (sockets,) = connection.execute("show unix_socket_directories").fetchone() or ("",)
    with cluster(version, home, primary_conninfo=f"host={sockets} user=postgres", hot_standby="on") as standby:
        data, owner = standby.data_dir, standby.data_dir.stat()
        standby.stop()
        primary.stop()
        shutil.rmtree(data)
        shutil.copytree(primary.data_dir, data)
        (data / "standby.signal").touch()
        for path in (data, *data.rglob("*")):
            shutil.chown(path, owner.st_uid, owner.st_gid)
        primary.start()
        standby.start()
        yield standby


def caught_up(standby: DevPostgres, primary: DevPostgres) -> None:
    """Wait until the standby shows all that the primary has."""
    with psycopg.connect(primary.url()) as here, psycopg.connect(standby.url(), autocommit=True) as there:
        (reached,) = here.execute("select pg_current_wal_lsn()").fetchone() or ("",)
        until(lambda: there.execute("select pg_last_wal_replay_lsn() >= %s", [reached]).fetchone() == (True,))


def promote(standby: DevPostgres) -> None:
    """Return when the standby takes writes."""
    with psycopg.connect(standby.url(), autocommit=True) as connection:
        assert connection.execute("select pg_promote()").fetchone() == (True,)


def dumped(url: str, version: str, file: Path) -> Path:
    """The database as pg_dump writes it."""
    _run(version, "pg_dump", "--format=custom", f"--file={file}", url)
    return file


def loaded(file: Path, version: str, url: str) -> None:
    """The dump as pg_restore makes a database of it. Roles are the cluster's and are not in it."""
    _run(version, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", f"--dbname={url}", str(file))


def _run(version: str, program: str, *arguments: str) -> None:
    found = binaries.find(version, _bin_dir(version)).bin_dir / program
    ended = subprocess.run([str(found), *arguments], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


def _bin_dir(version: str) -> Path | None:
    return postgres.DEBIAN_15 if version == "15" else None
