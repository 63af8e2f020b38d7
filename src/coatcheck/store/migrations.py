"""What this version of coatcheck ships for the schema: numbered files without a gap, whose texts never change once they are released.

A migration says in its header which code may work on what it leaves, as `-- oldest code: 0004, because …`: code written for that schema
version and later. One that says nothing is for its own code only.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from coatcheck.errors import Refused

LOCK_KEY = 0x636F6174_636B6D67  # "coatckmg": one key for all databases, as advisory locks are per database
RUNNER_WAIT_S = 600
"""How long a runner waits for another one, whose index builds may take minutes."""
TABLE_WAIT_S = 5
"""How long a migration tries to have its tables."""
ATTEMPT_MS = 400
"""How long one attempt may take: whatever queues behind it is the application. Below PostgreSQL's deadlock_timeout, 1 s."""

_FILE = re.compile(r"(?P<number>\d{4})_(?P<name>[a-z0-9_]+)\.sql", re.ASCII)
_HEADER = re.compile(r"\A(?:--[^\n]*\n)+")
_OLDEST_CODE = re.compile(r"^-- oldest code: (\d{4}), because \S", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file of `sql/migrations`."""

    number: int
    name: str
    sql: str = field(repr=False)

    @property
    def sha256(self) -> str:
        """What the database remembers of the file's text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def oldest_code(self) -> int:
        """The first schema version whose code may work on what this migration leaves."""
        header = _HEADER.match(self.sql)
        said = _OLDEST_CODE.search(header[0]) if header else None
        return int(said[1]) if said else self.number


def read_migrations(texts: Iterable[tuple[str, str]]) -> tuple[Migration, ...]:
    """Migrations from pairs of file name and text. Raises ValueError when a name, the numbering or a header is not as it must be."""
    found: list[Migration] = []
    for file_name, text in sorted(texts):
        match = _FILE.fullmatch(file_name)
        if match is None:
            raise ValueError(f"expected a migration named NNNN_words.sql, got {file_name}")
        found.append(Migration(number=int(match["number"]), name=match["name"], sql=text))
    if [each.number for each in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"expected migrations numbered 1, 2, 3, … got {[each.number for each in found]}")
    for each in found:
        if not 1 <= each.oldest_code <= each.number:
            raise ValueError(f"expected the oldest code of migration {each.number} before it, got {each.oldest_code}")
    return tuple(found)


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version of coatcheck, from 1 without a gap."""
    folder = files("coatcheck").joinpath("sql", "migrations")
    return read_migrations((each.name, each.read_text("utf-8")) for each in folder.iterdir())


def required_version() -> int:
    """The number of the last migration that this code was written for."""
    return shipped()[-1].number


def bookkeeping() -> str:
    """The statement that makes the table in which a database remembers its migrations, where there is none."""
    return _filled("bookkeeping")


def tables() -> str:
    """The statement by which a migration has every table to itself before it begins."""
    return f"do $tables$\nbegin\n{_filled('tables')}end\n$tables$;\n"


def script(after: int, to: int | None = None, *, migrations: Sequence[Migration] | None = None) -> str:
    """What `migrate_up` does from schema version `after` to `to`, as statements that anything may run that runs SQL.

    Example: `script(3)` brings a database from version 3 to this code's. Raises `Refused` for a range in which there is no migration.
    """
    known = shipped() if migrations is None else migrations
    end = len(known) if to is None else to
    if not 0 <= after < end <= len(known):
        raise Refused(
            f"expected versions from 0 to {len(known)}, the first before the last, got --from {after} --to {end}",
            next="`coatcheck migrate status` shows the version of a database",
        )
    head = _filled("head", first=after + 1, last=end)
    return "\n".join([head, bookkeeping(), *(_step(each, known) for each in known[after:end])])


def _step(migration: Migration, known: Sequence[Migration]) -> str:
    quote = "$migration$"
    while quote in migration.sql:
        quote = f"$x{quote[1:]}"
    return _filled(
        "step",
        number=migration.number,
        before=migration.number - 1,
        name=migration.name,
        oldest_code=migration.oldest_code,
        sha256s=", ".join(f"'{each.sha256}'" for each in known[: migration.number]),
        tables=_filled("tables"),
        quote=quote,
        text=migration.sql,
    )


def _filled(file: str, /, **values: object) -> str:
    """The text of `sql/script/<file>.sql` with its places filled; each place is filled once, so no value is read for places."""
    text = (files("coatcheck") / "sql" / "script" / f"{file}.sql").read_text(encoding="utf-8")
    waits = {"runner_wait_s": RUNNER_WAIT_S, "table_wait_s": TABLE_WAIT_S, "attempt_ms": ATTEMPT_MS}
    known: dict[str, object] = {"lock_key": LOCK_KEY, **waits, **values}
    return re.sub(r"\{\{(\w+)\}\}", lambda place: str(known[place[1]]), text)
