"""`migrate`: the schema moves when somebody says so, and the progress shows on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, Self

import psycopg
from cyclopts import Parameter

from coatcheck.app.place import database_of
from coatcheck.cli.ends import FINDINGS
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.config import load_settings
from coatcheck.seams import Seams
from coatcheck.store import catalogue, migrations, schema
from coatcheck.store.blocking import connected


def up(*, as_json: AsJson = False) -> None:
    """Apply the migrations that are missing, each in a transaction of its own; safe to repeat and to interrupt."""
    with _connection() as connection, _Progress() as progress:
        applied = schema.migrate_up(connection, on_progress=progress.show)
        version = schema.check_schema(connection)
    if as_json:
        write_object({"version": version, "applied": [_applied(each) for each in applied]})
    elif applied:
        write_line(
            f"schema version {version}: applied {', '.join(f'{each.number:04} {each.name}' for each in applied)}"
        )
    else:
        write_line(f"schema version {version}: nothing to apply")


def status(*, as_json: AsJson = False) -> None:
    """Every migration that this version or the database knows, and how it stands."""
    with _connection() as connection:
        found = schema.migrate_status(connection)
    rows = [asdict(each) for each in found]
    if as_json:
        version = schema.version_of(found)
        write_object({"version": version, "required_version": migrations.required_version(), "migrations": rows})
        return
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    show(table(("number", "name", "state", "applied at", "oldest code"), (list(row.values()) for row in rows)))


def sql(
    *,
    after: Annotated[int, Parameter(name="--from", help="The schema version that the database has.")] = 0,
    to: Annotated[int | None, Parameter(help="The version that it shall have; by default the newest.")] = None,
    _as_json: AsJson = False,
) -> None:
    """Print what `migrate up` runs, for a process of your own. Asks no database."""
    sys.stdout.write(migrations.script(after, to))


def check(*, as_json: AsJson = False) -> int:
    """Compare the schema with this version's, reading only. Findings are exit code 5."""
    with _connection() as connection:
        found = catalogue.inspect(connection)
    required = migrations.required_version()
    if as_json:
        findings = [asdict(each) for each in found.findings]
        write_object({"ok": not findings, "version": found.version, "required_version": required, "findings": findings})
    elif found.findings:
        from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

        say(f"schema version {found.version}, this version of coatcheck is for {required}")
        show(table(("finding", "what", "detail", "remedy"), (list(asdict(each).values()) for each in found.findings)))
    else:
        write_line(f"schema version {found.version}: exactly this version's")
    return FINDINGS if found.findings else 0


@contextmanager
def _connection() -> Iterator[psycopg.Connection[Any]]:
    with (
        database_of(load_settings(), Seams.real()) as url,
        connected(url, "migrate") as connection,
    ):
        yield connection


def _applied(each: schema.Applied) -> dict[str, object]:
    return {"number": each.number, "name": each.name, "applied_at": each.applied_at}


class _Progress:
    """A bar on a terminal, a line for each migration elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415 - for people only
            from rich.progress import Progress  # noqa: PLC0415 - for people only

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("migrations", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, migration: migrations.Migration, left: int) -> None:
        """One more is committed, and `left` are still to come."""
        if self._bar is None:
            say(f"applied {migration.number:04} {migration.name}, {left} to come")
        else:
            self._bar.update(self._task, completed=migration.number, total=migration.number + left)
