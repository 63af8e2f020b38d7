"""Where all compete: one PostgreSQL with its durability on, a fresh database for each run, and the service in a process of its own."""

import json
import os
import select
import subprocess  # noqa: TID251 - for the word PIPE; the seams spawn
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

import psycopg

from coatcheck.devdb import DevPostgres
from coatcheck.errors import Failed
from coatcheck.seams import Seams

PARAMETERS: Mapping[str, str] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    # no checkpoint falls into a run, so none of them pays for pages that another one touched first
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    # what is logged is counted, database by database
    "log_line_prefix": "%d ",
}
"""The server's settings, the same for all; the rest is PostgreSQL's default, autovacuum included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a run is given."""

    server: DevPostgres
    home: Path
    seams: Seams

    @property
    def admin_url(self) -> str:
        """A database that nobody competes in."""
        return self.server.url("postgres")

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.server.data_dir.with_name("log")

    def fresh(self, name: str) -> str:
        """A new database, its address."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(f'create database "{name}"'.encode())
        return self.server.url(name)

    def analyze(self, url: str) -> None:
        """Let PostgreSQL know what a database holds."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(b"vacuum (analyze)")

    def figure(self, query: str, parameters: Mapping[str, Any] = {}) -> int:
        """One figure, asked for in the database that nobody competes in."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            row = connection.execute(query.encode(), parameters).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def staged(seams: Seams) -> Iterator[Stage]:
    """Set the stage and clear it away again."""
    with tempfile.TemporaryDirectory() as folder:
        server = DevPostgres(Path(folder), seams=seams, settings=PARAMETERS).start()
        try:
            yield Stage(server=server, home=Path(folder), seams=seams)
        finally:
            server.remove()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The running service."""

    url: str
    said: IO[bytes]
    pid: int

    def is_done(self, within_s: float) -> bool:
        """Whether it said within `within_s` seconds that every job is done."""
        heard, _, _ = select.select([self.said], [], [], within_s)
        return bool(heard) and self.said.readline() == b"done\n"

    def tally(self) -> dict[str, Any]:
        """What it counted."""
        with urlopen(f"{self.url}/tally") as reply:  # noqa: S310 - the address is our own process's
            found: dict[str, Any] = json.load(reply)
        return found


@contextmanager
def serving(seams: Seams, expected: int) -> Iterator[Service]:
    """The service, until the end of the block."""
    command = [sys.executable, "-m", "bench.peers.service", str(expected)]
    process = seams.spawn(command, stdout=subprocess.PIPE, cwd=os.fspath(Path(__file__).parents[2]))
    try:
        if process.stdout is None:
            raise Failed("expected the service's output, got none", next="run it again")
        with process.stdout as said:
            yield Service(url=said.readline().decode().strip(), said=said, pid=process.pid)
    finally:
        process.kill()
        process.wait()
