"""The demo's own folder, server and database, apart from everybody's data: one run at a time, and what it wrote can be read afterwards.

A run works in a database with a name of its own and gives it the usual name at its end. So a worker that outlived a killed run finds its
database gone, and the usual commands find the last complete run. No setting but COATCHECK_HOME is heeded: a demo never touches a database
that somebody configured.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from coatcheck.config import Settings
from coatcheck.devdb import DevPostgres, alone
from coatcheck.seams import Seams

_ADMINISTRATION = "postgres"
_LASTING = "coatcheck"
_LOCK = "demo.lock"
_SERVER = {
    # What the demo loses in a power failure is its own account, and the commits of two cores' one disk are not its subject.
    "fsync": "off",
    "full_page_writes": "off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """Where one run takes place. `url` is the database of this run; `home` serves as COATCHECK_HOME for whoever looks around later."""

    home: Path
    outputs: Path
    logs: Path
    url: str = field(repr=False)
    version: str


@asynccontextmanager
async def opened(home: Path, *, seams: Seams) -> AsyncIterator[Premises]:
    """The premises for one run; afterwards the server is stopped. Raises `Failed` while another demo runs in the same home."""
    with alone(home / _LOCK, "demo"):
        server = DevPostgres(home, seams=seams, settings=_SERVER)
        try:
            await _uninterrupted(server)
            name = f"run_{seams.ids.uuid7().hex}"
            _prepare(server, name)
            yield Premises(
                home=home,
                outputs=_emptied(home / "outputs"),
                logs=_emptied(home / "logs"),
                url=server.url(name),
                version=server.version,
            )
            _keep(server, name)
        finally:
            server.stop()


def home_of(settings: Settings) -> Path:
    """Where the demo keeps its own, under COATCHECK_HOME and apart from what else lies there."""
    return settings.home / "demo"


def remove(home: Path, *, seams: Seams) -> None:
    """Delete what demos left in `home`: server, outputs, logs. Nothing where none ever ran.

    Raises `Failed` while a demo runs there or a command still looks around.
    """
    if not (home / _LOCK).exists():
        return
    with alone(home / _LOCK, "demo"):
        DevPostgres(home, seams=seams).remove()
        shutil.rmtree(home)


async def _uninterrupted(server: DevPostgres) -> None:
    """Start it in a thread, and wait for the thread even when interrupted: a server half started could not be stopped."""
    starting = asyncio.ensure_future(asyncio.to_thread(server.start))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        raise


def _prepare(server: DevPostgres, name: str) -> None:
    """Make the database of this run and drop what killed runs left."""
    with psycopg.connect(server.url(_ADMINISTRATION), autocommit=True) as connection:
        for (left,) in connection.execute("select datname from pg_database where datname like 'run\\_%'").fetchall():
            _drop(connection, left)
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))


def _keep(server: DevPostgres, name: str) -> None:
    """Let the database of this run take the place of the last one's."""
    with psycopg.connect(server.url(_ADMINISTRATION), autocommit=True) as connection:
        _drop(connection, _LASTING)
        connection.execute(
            sql.SQL("alter database {} rename to {}").format(sql.Identifier(name), sql.Identifier(_LASTING))
        )


def _drop(connection: psycopg.Connection, name: str) -> None:
    connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
