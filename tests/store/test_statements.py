"""Every statement file is read by one caller, says what it is for, and can be prepared against the migrated schema as it stands."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

import coatcheck
import postgres
from coatcheck.store.statements import numbered, statement

SOURCE = Path(coatcheck.__file__).parent
ROOT = SOURCE / "sql" / "statements"
FILES = sorted(path for path in ROOT.rglob("*.sql") if path.parent.name != "parts")
PARTS = sorted((ROOT / "parts").glob("*.sql"))
CALL = re.compile(r"statement\(\s*\"(\w+)\",\s*(f?)\"([\w{}]+)\"")
COMMANDS = {"alter", "checkpoint", "discard", "lock", "truncate", "vacuum"}
"""What a server runs but cannot prepare."""
SINCE = {"flushed": 16}
"""Which version of PostgreSQL has what a statement reads, where not all have it."""
PARAMETER = re.compile(r"%\((\w+)\)s(::[\w\[\]]+)?")


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: f"{path.parent.name}/{path.stem}")


def text(path: Path) -> str:
    return statement(path.parent.name, path.stem)


def is_command(path: Path) -> bool:
    return re.sub(r"--[^\n]*\n", "", path.read_text()).split()[0] in COMMANDS


def callers(path: Path) -> list[str]:
    """Where the source names a statement, by its whole name or through a pattern such as show_{name}.

    The blocking twin is not counted: `coatcheck enqueue` reads in its own transaction what the store reads otherwise.
    """
    found = []
    for module in sorted(SOURCE.rglob("*.py")):
        for room, _, name in CALL.findall(module.read_text()):
            pattern = re.sub(r"\\\{\w+\\\}", r"\\w+", re.escape(name))
            if room == path.parent.name and re.fullmatch(pattern, path.stem) and module.stem != "blocking":
                found.append(module.name)
    return found


@pytest.fixture(scope="module")
def schema(template: postgres.Template) -> Iterator[psycopg.Connection[TupleRow]]:
    """A migrated database that nobody writes to."""
    with template.copy() as database, database.connect() as connection:
        yield connection


@named([path for path in FILES if path.stem not in SINCE and not is_command(path)])
def test_every_statement_can_be_prepared_with_all_its_parameters_typed(
    path: Path, schema: psycopg.Connection[TupleRow]
) -> None:
    """Types come from the casts in the text; a parameter without one must be told by its place."""
    with schema.transaction(force_rollback=True):
        numbers: dict[str, int] = {}
        body = PARAMETER.sub(
            lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}{found[2] or ''}", text(path)
        )
        body = body.replace("%%", "%")
        schema.execute("deallocate all")
        schema.execute(f"prepare probe as {body}".encode())
        (types,) = schema.execute(
            "select parameter_types::text[] from pg_prepared_statements where name = 'probe'"
        ).fetchone() or ((),)
        assert len(types) == len(numbers)
        assert "unknown" not in types


@named([path for path in FILES if path.stem in SINCE])
def test_a_statement_for_newer_servers_can_be_prepared_there_and_nowhere_else(
    path: Path, schema: psycopg.Connection[TupleRow]
) -> None:
    with schema.transaction(force_rollback=True):
        probe = f"prepare newer as {text(path)}".encode()
        if schema.info.server_version >= SINCE[path.stem] * 10_000:
            schema.execute(probe)
        else:
            with pytest.raises(psycopg.errors.UndefinedTable):
                schema.execute(probe)


@named([path for path in FILES if is_command(path)])
def test_every_command_is_understood(path: Path, schema: psycopg.Connection[TupleRow]) -> None:
    """And has no parameters. What may not be run within a transaction is refused for that alone."""
    with schema.transaction(force_rollback=True), suppress(psycopg.errors.ActiveSqlTransaction):
        schema.execute(text(path).encode())


@named(FILES)
def test_every_statement_has_exactly_one_caller(path: Path) -> None:
    """`write` in the door names its five by a variable: they are its methods."""
    steps = {"mark", "conclude", "snapshot", "deliver", "decide"}
    if path.parent.name == "store" and path.stem in steps:
        assert len(re.findall(rf'self\._write\(\s*"{path.stem}"', (SOURCE / "store" / "door.py").read_text())) == 1
    elif path.stem in {"pause_provider", "resume_provider", "pause_observation", "resume_observation"}:
        assert (SOURCE / "store" / "pauses.py").read_text().count(f'"{path.stem}"') == 1
    else:
        assert len(callers(path)) == 1


@named(PARTS)
def test_every_part_is_shared_or_a_chapter_of_a_long_statement(path: Path) -> None:
    users = [other for other in FILES if f"-- include: {path.stem}\n" in other.read_text()]
    assert len(users) > 1 or [len(text(user).splitlines()) > 250 for user in users] == [True]


@named(FILES)
def test_no_line_asks_for_a_part_that_is_not_there(path: Path) -> None:
    assert "-- include:" not in text(path)


@named([*FILES, *PARTS])
def test_statements_are_lower_case_and_end_without_a_semicolon(path: Path) -> None:
    code = re.sub(r"--[^\n]*|'[^']*'", "", path.read_text())
    assert code == code.lower()
    assert ";" not in code


@named([*FILES, *PARTS])
def test_columns_are_named_where_a_table_is_read(path: Path) -> None:
    """A star stands only for what the lines above it name: an unnested input, or a judgement upon it."""
    code = re.sub(r"--[^\n]*", "", path.read_text())
    for prefix in re.findall(r"(\w+)\.\*", code):
        assert prefix in {"input", "guarded", "ruled", "turned"}
    for source in re.findall(r"select \*\s+from (\w+)", code):
        assert source == "unnest"


@named([*FILES, *PARTS])
def test_only_our_two_functions_are_asked_for_the_time(path: Path) -> None:
    code = re.sub(r"--[^\n]*|coatcheck\.(?:due|lease)_now\(\)", "", path.read_text())
    assert re.findall(r"\bnow\(\)|\w+_timestamp\b|current_(?:date|time)|\blocaltime\w*|timeofday", code) == []


def test_a_read_survives_a_column_that_a_migration_adds(database: postgres.Database) -> None:
    """A star would fail in every session that prepared it: cached plan must not change result type."""
    parameters: dict[str, object] = {"operation_id": None, "tenant_id": None, "after": None, "size": 1, "phase": None}
    reads: dict[str, dict[str, object]] = {
        "find": parameters,
        "load": {**parameters, "operation_id": []},
        "list": parameters,
        "list_of_tenant": parameters,
    }
    with database.connect() as connection, database.connect() as migrating:
        for _ in range(2):
            for name, values in reads.items():
                connection.execute(statement("store", name).encode(), values, prepare=True)
            migrating.execute("alter table coatcheck.operations add column if not exists later integer")
        connection.execute("select * from coatcheck.operations", prepare=True)
        migrating.execute("alter table coatcheck.operations add column still_later integer")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("select * from coatcheck.operations", prepare=True)


def test_placeholders_are_numbered_by_their_first_place() -> None:
    written = "select %(b)s, %(a)s::text[], %(b)s, format('%%s %%')"
    assert numbered(written) == (b"select $1, $2::text[], $1, format('%s %')", ("b", "a"))
