"""A real PgBouncer before the server under test, as the account that the server runs as; killed and started anew at the same address."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
from psycopg.rows import dict_row

import postgres
from waiting import until

PLACES = (Path("/var/lib/coatcheck/pgbouncer"), postgres.SLOTS.parent / ".pgbouncer")
"""Where scripts/pgbouncer leaves what it takes apart, for root and for others."""
PORT = 5432


class Pooler:
    """One PgBouncer. `mode` is `session` or `transaction`; `settings` are its own, over those that a worker needs."""

    def __init__(self, database: postgres.Database, folder: Path, mode: str, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._database = database
        self._log = folder / "log"
        address = parse_qs(urlsplit(database.url).query)
        options = {
            "unix_socket_dir": str(folder),
            "listen_port": str(PORT),
            "auth_type": "any",
            "admin_users": "postgres",
            "pool_mode": mode,
            "max_prepared_statements": "100",
            "logfile": str(self._log),
            "verbose": "1",
            **settings,
        }
        server = f"* = host={address['host'][0]} port={address['port'][0]} user=postgres"
        lines = ["[databases]", server, "[pgbouncer]", *(f"{name} = {value}" for name, value in options.items())]
        (folder / "ini").write_text("\n".join(lines) + "\n")
        for path in (folder, folder / "ini"):
            shutil.chown(path, *_account())
        self._process = self._started()

    @property
    def url(self) -> str:
        """The address of the same database by way of the pooler."""
        return self.url_of(self._database.name)

    def kill(self) -> None:
        """End it without a word: every connection breaks, on both sides."""
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """A crash and a new start."""
        self.kill()
        self._process = self._started()

    def servers(self) -> list[dict[str, Any]]:
        """Its sessions at the server, as it tells them."""
        with psycopg.connect(
            self.url_of("pgbouncer"), autocommit=True, row_factory=dict_row, cursor_factory=psycopg.ClientCursor
        ) as connection:
            return connection.execute("show servers").fetchall()

    def url_of(self, name: str) -> str:
        """The address of a database of the same server by way of the pooler."""
        return f"postgresql://postgres@/{quote(name)}?host={quote(str(self._folder), safe='')}&port={PORT}"

    def _started(self) -> subprocess.Popen[bytes]:
        (self._folder / f".s.PGSQL.{PORT}").unlink(missing_ok=True)
        user, group = _account()
        process = subprocess.Popen(
            [program(), "--quiet", str(self._folder / "ini")],
            user=user,
            group=group,
            extra_groups=[] if os.geteuid() == 0 else None,
            cwd="/",
        )
        until(lambda: self._answers() or process.poll() is not None)
        assert process.poll() is None, self._log.read_text()
        return process

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


def program() -> str:
    """The command that scripts/pgbouncer found or made."""
    found = next((str(place / "pgbouncer") for place in PLACES if (place / "pgbouncer").exists()), None)
    found = found or shutil.which("pgbouncer")
    assert found is not None, "expected PgBouncer 1.21 or newer, got none: run scripts/pgbouncer"
    return found


@contextmanager
def pooled(database: postgres.Database, mode: str, **settings: str) -> Iterator[Pooler]:
    """A running PgBouncer before `database`; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder:
        pooler = Pooler(database, Path(folder), mode, settings)
        try:
            yield pooler
        finally:
            pooler.kill()


def _account() -> tuple[int, int]:
    """PgBouncer refuses root, and only the server's account may enter the folder of its socket."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid
