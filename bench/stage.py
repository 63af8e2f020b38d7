"""A place to measure on: an embedded PostgreSQL with its durability on, the simulated service in a process of its own, a full queue."""

import json
import subprocess  # noqa: TID251 - for the word PIPE; the seams spawn
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from coatcheck.config import Settings, load_settings
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from coatcheck.store.schema import migrate_up

SERVICE = "import asyncio, sys; from coatcheck.sim import serve; asyncio.run(serve(0, 7, None, sys.stdout))"
ENQUEUE = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'tenant ' || mod(n, 3), 'operation_key', 'key ' || n,
  'provider', 'genace', 'specification_text', '{"prompt":"picture ' || n || '"}'))
from generate_series(1, %(count)s) as n
"""
COMMITS = "select xact_commit + xact_rollback from pg_stat_database where datname = %(name)s"
ALONE = "select count(*) from pg_stat_activity where datname = %(name)s"
NAME = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a measurement is given."""

    settings: Settings
    environ: Mapping[str, str]
    home: Path
    url: str
    admin_url: str

    def enqueue(self, count: int) -> None:
        """Fill the queue, in one transaction."""
        with psycopg.connect(self.url) as connection:
            connection.execute(ENQUEUE, {"count": count})

    def transactions(self, seams: Seams) -> int:
        """Transactions of the measured database so far; read when nobody is connected, because backends report when they end."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            while _figure(connection, ALONE):
                seams.pause(0.01)
            return _figure(connection, COMMITS)


def _figure(connection: psycopg.Connection[tuple[int]], query: str) -> int:
    row = connection.execute(query.encode(), {"name": NAME}).fetchone()
    return row[0] if row else 0


@contextmanager
def staged(seams: Seams) -> Iterator[Stage]:
    """Set the stage and clear it away again."""
    # autovacuum would commit, too, and the commits are counted
    parameters = {"autovacuum": "off", "shared_buffers": "256MB", "max_wal_size": "4GB"}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        server = DevPostgres(home, seams=seams, settings=parameters).start()
        try:
            with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
                connection.execute(f"create database {NAME}".encode())
            with psycopg.connect(server.url(NAME)) as connection:
                migrate_up(connection)
            with _service(seams) as base_url:
                environ = {
                    "COATCHECK_HOME": str(home / "own"),
                    "COATCHECK_PROVIDERS__GENACE__BASE_URL": base_url,
                    "COATCHECK_PROVIDERS__GENACE__API_KEY": "bench-key",
                    "COATCHECK_PROVIDERS__GENACE__LOOK_MIN_S": "0.05",
                }
                yield Stage(
                    settings=load_settings(environ, home),
                    environ=environ,
                    home=home,
                    url=server.url(NAME),
                    admin_url=server.url("postgres"),
                )
        finally:
            server.remove()


@contextmanager
def _service(seams: Seams) -> Iterator[str]:
    process = seams.spawn([sys.executable, "-c", SERVICE], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        yield json.loads(process.stdout.readline())["base_url"]
    finally:
        process.terminate()
        process.wait()
