"""The examples of the pages run on a real database, and the tables that the requirement draws are there with all their promises."""

import ast
import asyncio
import dataclasses
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

import coatcheck
import postgres
from coatcheck import EnqueuedOperation, Operation, Output
from coatcheck.app.reconciling import OperatorDecisions
from coatcheck.app.reconciling.views import Candidate, Decision, Doubt, Possible, Resolution
from coatcheck.sim import simulated_service
from coatcheck.store.allowances import Allowance
from coatcheck.store.audit import Finding
from coatcheck.store.charges import Charges
from coatcheck.store.orphans import Orphan
from docs.pages import DOCS, ROOT, SOURCE, blocks
from reconcile.scene import Scene


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What the README's application approves."""

    id: int = 7
    version: int = 2
    prompt: str = "a red coat"


def compiled(text: str) -> CodeType:
    """A snippet as it would run in a shell that awaits."""
    code: CodeType = compile(text, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


def test_the_example_of_the_readme_runs(
    database: postgres.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COATCHECK_DATABASE_URL", database.url)
    monkeypatch.chdir(tmp_path)
    approving, reading = [compiled(block.text) for block in blocks(ROOT / "README.md") if block.language == "python"]
    names: dict[str, Any] = {}

    async def run() -> None:
        exec(approving, names)
        async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
            await connection.execute("create table frames (id integer, approved boolean)")
            await connection.execute("insert into frames values (7, false)")
            names["operation_id"] = await names["approve"](connection, "ada", Frame())
            names["tenant_id"] = "ada"
            await eval(reading, names)
        await names["coat"].aclose()

    asyncio.run(run())
    with database.connect() as connection:
        assert connection.execute("select approved from frames").fetchall() == [(True,)]
    assert (names["operation"].operation_key, names["operation"].phase) == ("frame-7-v2", "prepared")


async def lent(example: str, order: Callable[..., Any], url: str) -> str:
    """Call the `order` of an example with what it is written for; the id that it returns."""
    alchemy_url = make_url(url).set(drivername="postgresql+psycopg")
    if "asyncpg" in example:
        connection = await asyncpg.connect(url)
        found = await order(connection, "asyncpg")
        await connection.close()
    elif "AsyncEngine" in example:
        engine = create_async_engine(alchemy_url)
        found = await order(engine, "SQLAlchemy async")
        await engine.dispose()
    elif "Engine" in example:
        blocking = create_engine(alchemy_url)
        found = await asyncio.to_thread(order, blocking, "SQLAlchemy")
        blocking.dispose()
    elif "AsyncConnection" in example:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as awaited:
            found = await order(awaited, "psycopg async")
    else:
        with psycopg.connect(url, autocommit=True) as borrowed:
            found = await asyncio.to_thread(order, borrowed, "psycopg")
    return str(found)


def test_the_examples_of_the_library_page_run_with_every_driver(
    database: postgres.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COATCHECK_DATABASE_URL", database.url)
    monkeypatch.chdir(tmp_path)
    first, *examples = [block.text for block in blocks(DOCS / "library.md") if block.language == "python"]
    orders = [each for each in examples if "def order" in each]
    (reading,) = [each for each in examples if "def look" in each]
    names: dict[str, Any] = {}
    with database.connect() as connection:
        connection.execute("create table orders (name text)")

    async def run() -> list[str]:
        exec(compiled(first), names)
        made = []
        for example in orders:
            exec(compiled(example), names)
            made.append(await lent(example, names["order"], database.url))
        exec(compiled(reading), names)
        await names["look"](made[0])
        return made

    made = asyncio.run(run())
    assert len(set(made)) == 5
    assert capsys.readouterr().out.startswith("prepared none not_started\n5\n")
    with database.connect() as connection:
        assert connection.execute("select count(*) from orders").fetchone() == (5,)


def test_the_example_of_deciding_adopts_what_a_lost_reply_would_have_named(
    database: postgres.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = [block.text for block in blocks(DOCS / "library.md") if block.language == "python"]
    (deciding,) = [each for each in others if "def decide" in each]
    names: dict[str, Any] = {}
    with simulated_service(seed=7) as sim, Scene(database, sim, tmp_path) as scene:
        operation = scene.in_doubt()
        for name, value in {"COATCHECK_DATABASE_URL": scene.url, **scene.environment({})}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        exec(compiled(first + deciding), names)
        followed = asyncio.run(names["decide"](operation, scene.job_of(operation)))
        assert scene.standing(operation)["phase"] == "accepted"
    told = capsys.readouterr().out
    assert f"{operation} 5 credits ['adopt', 'write-off']" in told
    assert "nobody knows whether the service made a job for it" in told
    assert followed.startswith("a worker looks at the remote job from now on")


def test_the_library_page_has_every_exception_every_field_and_every_decision() -> None:
    text = (DOCS / "library.md").read_text()
    known = [getattr(coatcheck, name) for name in coatcheck.__all__]
    errors = {each.__name__ for each in known if isinstance(each, type) and issubclass(each, coatcheck.CoatcheckError)}
    # what commands and workers alone raise, and those of which only the kinds are raised
    errors -= {"CoatcheckError", "Failed", "LeaseTooShort", "Stale", "StaleLease", "Unconfirmed"}
    fields = {each.name for kind in (Operation, EnqueuedOperation, Output) for each in dataclasses.fields(kind)}
    assert len(errors) >= 20
    assert [name for name in sorted(errors | fields) if f"`{name}`" not in text] == []
    calls = {name: call for name, call in vars(OperatorDecisions).items() if not name.startswith("_")}
    assert len(calls) >= 10
    for name, call in calls.items():
        (row,) = re.findall(rf"^\| `{name}\((.*?)\)` \|", text, re.MULTILINE)
        named = [each.split("=")[0] for each in row.split(", ")]
        assert named == [each for each in inspect.signature(call).parameters if each != "self"], name


def test_the_command_page_has_every_field_of_what_is_decided() -> None:
    text = (DOCS / "cli.md").read_text()
    shown = (Doubt, Candidate, Possible, Decision, Orphan, Resolution, Allowance, Charges, Finding)
    fields = {each.name for kind in shown for each in dataclasses.fields(kind)} - {"operation", "is_requested", "name"}
    assert [name for name in sorted(fields) if f"`{name}`" not in text] == []


def test_the_story_of_the_operating_page_is_told_by_the_program() -> None:
    """Line by line, apart from what is left out: `test_story` tells the whole of it."""
    whole = (ROOT / "tests" / "app" / "lost_reply.txt").read_text().splitlines()
    (shown,) = [block.text.splitlines() for block in blocks(DOCS / "operating.md") if block.language == "text"]
    told = [line for line in shown if line.strip() != "…"]
    assert len(told) >= 20
    assert told == [line for line in whole if line in told]


def columns_of(database: postgres.Database, table: str) -> dict[str, tuple[str, bool]]:
    """Type and whether it may be null, by column."""
    with database.connect() as connection:
        found = connection.execute(
            "select attname, atttypid::regtype::text, not attnotnull from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped",
            (f"coatcheck.{table}",),
        )
        return {str(name): (str(kind), bool(nullable)) for name, kind, nullable in found}


def test_the_example_table_of_the_store_is_there_column_by_column(database: postgres.Database) -> None:
    columns = columns_of(database, "operations")
    assert {name for name, (_, nullable) in columns.items() if not nullable} >= {
        "operation_id",
        "tenant_id",
        "specification_hash",
        "render_state",
        "delivery_state",
        "revision",
        "updated_at",
    }
    assert columns["remote_job_id"] == ("text", True)
    assert columns["revision"] == ("bigint", False)
    with database.connect() as connection:
        keys = connection.execute(
            "select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'coatcheck.operations'::regclass"
        ).fetchall()
        defaults = connection.execute(
            "select column_default from information_schema.columns where table_schema = 'coatcheck'"
            " and table_name = 'operations' and column_name in ('delivery_state', 'revision') order by column_name"
        ).fetchall()
    assert any("UNIQUE" in key and "(operation_id)" in key for (key,) in keys)
    assert any("(tenant_id, operation_id)" in key for (key,) in keys)
    assert defaults == [("'not_started'::text",), ("0",)]


def test_the_example_message_of_the_queue_is_there_field_by_field(database: postgres.Database) -> None:
    columns = columns_of(database, "outbox")
    assert columns["action"] == ("text", False)
    assert columns["operation_id"] == ("uuid", False)
    assert columns["expected_remote_job_id"] == ("text", True)
    assert columns["expected_revision"] == ("bigint", False)
    assert columns["schema_version"] == ("smallint", False)


def test_the_queries_of_the_operating_page_run(database: postgres.Database) -> None:
    queries = [block.text for block in blocks(DOCS / "operating.md") if block.text.startswith("select")]
    assert len(queries) >= 2
    with database.connect() as connection:
        for query in queries:
            assert connection.execute(query.encode()).description


def test_the_roles_of_the_operating_page_are_those_of_the_migration_which_may_be_repeated(
    database: postgres.Database,
) -> None:
    migration = (SOURCE / "sql" / "migrations" / "0003_roles.sql").read_text()
    (page,) = [block.text for block in blocks(DOCS / "operating.md") if block.text.startswith("create role coatcheck")]
    with database.connect() as connection:
        before = privileges(connection)
        connection.execute(migration.encode())
        connection.execute("select coatcheck.hand_over()")
        assert privileges(connection) == before
        for role in ("coatcheck_owner", "coatcheck_worker", "coatcheck_api", "coatcheck_app"):
            assert f"create role {role} nologin;" in page
            assert f"'{role}'" in migration
            assert connection.execute("select rolcanlogin from pg_roles where rolname = %s", (role,)).fetchall() == [
                (False,)
            ]


def privileges(connection: psycopg.Connection[Any]) -> list[Any]:
    return connection.execute(
        "select relname, relowner::regrole::text, relacl::text from pg_class"
        " where relnamespace = 'coatcheck'::regnamespace"
        " union all select proname, proowner::regrole::text, proacl::text from pg_proc"
        # what hands everything over may itself belong to either
        " where pronamespace = 'coatcheck'::regnamespace and proname <> 'hand_over' order by 1, 3"
    ).fetchall()


def test_no_example_of_the_pages_makes_tables() -> None:
    shown = [block.text for page in sorted(DOCS.rglob("*.md")) for block in blocks(page)]
    assert [text for text in shown if "create table" in text.lower() or "create index" in text.lower()] == []
