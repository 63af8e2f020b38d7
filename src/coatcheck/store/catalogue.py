"""Whether a database is what its rows of migrations say: the versions first, and where these agree, each object of the schema.

What the migrations make is known without a database: `sql/catalogue.tsv` has one line for each object, and a test compares it with a
migrated database. What somebody added besides is none of our business.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from psycopg.rows import tuple_row

from coatcheck.store.migrations import required_version
from coatcheck.store.schema import Connection, State, Status, migrate_status, version_of, works
from coatcheck.store.statements import statement

Definitions = Mapping[tuple[str, str], str]
"""The definition of each object, by its kind and name."""

_RESTORE = "make it again as `coatcheck migrate sql` shows it"
_REMEDIES = {
    "constraint": "it keeps a promise: run `coatcheck audit`, then make it again as `coatcheck migrate sql` shows it",
    "index": "drop what is left of it, and make it again as `coatcheck migrate sql` shows it, with `create index concurrently`",
    "trigger": "it keeps what was recorded: run `coatcheck audit`, then make it again as `coatcheck migrate sql` shows it",
}


class Kind(enum.StrEnum):
    """What is wrong. AHEAD is no fault where `detail` says that this version may work there."""

    BEHIND = "behind"
    AHEAD = "ahead"
    CHANGED = "changed"
    MISSING = "missing"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference. `subject` is a migration, as `0004 money`, or an object, as `column operations.phase`."""

    kind: Kind
    subject: str
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The version that a database says it has, and all in which it differs from this code's."""

    version: int
    findings: Sequence[Finding]


def inspect(connection: Connection) -> Inspection:
    """Compare a database's schema with this code's. Reads only, in one transaction.

    Example: `inspect(connection).findings == []` where the schema is exactly this version's.
    """
    with connection.transaction():
        statuses = migrate_status(connection)
        found = [finding for each in statuses if (finding := _of_migration(each)) is not None]
        if not found:
            found = list(_differences(expected(), read(connection)))
    return Inspection(version=version_of(statuses), findings=found)


def read(connection: Connection) -> Definitions:
    """What the schema is made of, in the connection's transaction."""
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute("set local search_path = pg_catalog")
        cursor.execute(statement("store", "read_catalogue"), {})
        return {(kind, name): definition for kind, name, definition in cursor.fetchall()}


def expected() -> Definitions:
    """What the migrations of this version make."""
    text = (files("coatcheck") / "sql" / "catalogue.tsv").read_text(encoding="utf-8")
    found: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        kind, name, definition = line.split("\t")
        found[kind, name] = definition
    return found


def written(definitions: Definitions) -> str:
    """The file that `expected` reads."""
    return "".join(f"{kind}\t{name}\t{definition}\n" for (kind, name), definition in sorted(definitions.items()))


def _of_migration(each: Status) -> Finding | None:
    subject = f"{each.number:04} {each.name}"
    match each.state:
        case State.APPLIED:
            return None
        case State.PENDING:
            detail = f"not applied; {_beside(each)}"
            return Finding(kind=Kind.BEHIND, subject=subject, detail=detail, remedy="run `coatcheck migrate up`")
        case State.CHANGED:
            return Finding(
                kind=Kind.CHANGED,
                subject=subject,
                detail="applied with another text than this version ships",
                remedy="use the version of coatcheck that migrated this database",
            )
        case State.UNKNOWN:
            may = (
                "this version may work beside it" if works(each, required_version()) else "this version does not start"
            )
            detail = f"applied by a newer version; {may}"
            return Finding(kind=Kind.AHEAD, subject=subject, detail=detail, remedy="deploy the newer version")


def _beside(each: Status) -> str:
    """What a deployment has to know before it applies a migration."""
    if each.oldest_code == each.number:
        return "stop every worker of an older version first"
    return f"workers of schema version {each.oldest_code} and later may go on beside it"


def _differences(wanted: Definitions, there: Definitions) -> Iterator[Finding]:
    for (kind, name), definition in wanted.items():
        got = there.get((kind, name))
        if got == definition:
            continue
        missing = got is None
        yield Finding(
            kind=Kind.MISSING if missing else Kind.DIFFERENT,
            subject=f"{kind} {name}",
            detail=f"expected {definition}" + ("" if missing else f", got {got}"),
            remedy=_REMEDIES.get(kind, _RESTORE),
        )
