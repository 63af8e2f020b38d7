"""The library: enqueue on the caller's transaction, reads of one tenant, nothing loaded or opened before it is needed."""

import asyncio
import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import psycopg
import pytest

import postgres
from coatcheck import Coatcheck, KeyReused, NotFound, Operation, Phase, Refused, load_settings

SPECIFICATION = {"prompt": "a red coat"}
UNKNOWN = "op_00000000000000000000000001"


@pytest.fixture
def library(database: postgres.Database, tmp_path: Path) -> Coatcheck:
    environ = {"HOME": str(tmp_path), "COATCHECK_DATABASE_URL": database.url}
    return Coatcheck(load_settings(environ, tmp_path))


@pytest.fixture
def connection(database: postgres.Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.url) as opened:
        yield opened


@pytest.mark.parametrize("package", ["coatcheck", "coatcheck.app.story", "coatcheck.app.reconciling"])
def test_every_public_name_is_there_and_listed(package: str) -> None:
    """Listed also before anything was asked for, and so before it is loaded."""
    shown = "import sys, importlib; found = importlib.import_module(sys.argv[1]); print(set(found.__all__) - set(dir(found)))"
    fresh = subprocess.run([sys.executable, "-c", shown, package], capture_output=True, check=True)
    assert fresh.stdout == b"set()\n"
    found = import_module(package)
    for name in found.__all__:
        assert getattr(found, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(found, "nonsense")  # noqa: B009 - it is not there


def test_the_door_itself_loads_no_driver(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom coatcheck import Coatcheck, NotFound, Operation\n"
        "Coatcheck()\n"
        "print([name for name in ('psycopg', 'asyncpg', 'aiohttp', 'sqlalchemy', 'pydantic') if name in sys.modules])"
    )
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environ, cwd=tmp_path)
    assert ended.stdout == b"[]\n"


def test_it_takes_the_settings_of_the_environment(database: postgres.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_DATABASE_URL", database.url)

    async def story() -> list[Operation]:
        async with Coatcheck() as opened:
            return await opened.for_tenant("t1").list()

    assert asyncio.run(story()) == []


def test_enqueue_answers_what_was_committed(library: Coatcheck, connection: psycopg.Connection) -> None:
    made = library.enqueue_sync(
        connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace", estimate=5
    )
    again = library.enqueue_sync(connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace")
    assert (made.created, made.revision, made.phase) == (True, 0, Phase.PREPARED)
    assert isinstance(made, Operation)
    assert again == dataclasses.replace(made, created=False)
    assert made.operation_id.startswith("op_")
    with pytest.raises(KeyReused):
        library.enqueue_sync(connection, tenant_id="t1", key="k1", specification={}, provider="genace")
    connection.commit()
    found = asyncio.run(_get(library, "t1", made.operation_id))
    told, stored = made.as_json(), found.as_json()
    assert told == {**stored, "created": True, "created_at": told["created_at"], "updated_at": told["updated_at"]}
    assert made.created_at == made.updated_at
    assert abs(found.created_at - made.created_at) < timedelta(seconds=1)


def test_what_was_found_is_told_as_far_as_the_answer_goes(library: Coatcheck, connection: psycopg.Connection) -> None:
    made = library.enqueue_sync(connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace")
    connection.execute("update coatcheck.operations set phase = 'cancelled', revision = 1")
    again = library.enqueue_sync(connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace")
    assert again == dataclasses.replace(made, created=False, phase=Phase.CANCELLED, revision=1)


def test_wishes_are_passed_on(library: Coatcheck, connection: psycopg.Connection) -> None:
    later = datetime(2099, 1, 1, tzinfo=UTC)
    library.enqueue_sync(
        connection,
        tenant_id="t1",
        key="k1",
        specification=SPECIFICATION,
        provider="genace",
        estimate=2,
        unit="frames",
        priority=3,
        not_before_at=later,
        dispatch_by_at=later,
    )
    row = connection.execute(
        "select estimate, unit, priority, not_before_at, dispatch_by_at from coatcheck.operations"
    ).fetchone()
    assert row == (2, "frames", 3, later, later)
    with pytest.raises(TypeError, match="colour"):
        library.enqueue_sync(connection, tenant_id="t1", key="k2", specification={}, provider="genace", colour="red")  # type: ignore[call-arg] # what a caller without types may pass


def test_a_rolled_back_transaction_leaves_nothing(library: Coatcheck, database: postgres.Database) -> None:
    async def story() -> None:
        async with await psycopg.AsyncConnection.connect(database.url) as connection:
            made = await library.enqueue(
                connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace"
            )
            assert made.created
            await connection.rollback()
        assert await library.for_tenant("t1").list() == []
        await library.aclose()

    asyncio.run(story())


def test_unknown_foreign_and_malformed_ids_get_one_answer(library: Coatcheck, connection: psycopg.Connection) -> None:
    made = library.enqueue_sync(connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace")
    connection.commit()

    async def story() -> set[tuple[str, str]]:
        answers = set()
        async with library:
            for asked in (UNKNOWN, made.operation_id, "nonsense", "", "op_" + "z" * 26, None, 7):
                with pytest.raises(NotFound) as caught:
                    await library.for_tenant("t2").get(asked)  # type: ignore[arg-type] # as above
                answers.add((str(caught.value), caught.value.next))
        return answers

    assert len(asyncio.run(story())) == 1


@pytest.mark.parametrize("tenant", [None, "", 0, b"t1"])
def test_no_value_of_a_callers_becomes_the_operators_view(library: Coatcheck, tenant: str) -> None:
    with pytest.raises(Refused):
        library.for_tenant(tenant)


def test_a_list_streams_or_is_awaited(library: Coatcheck, connection: psycopg.Connection) -> None:
    made = [
        library.enqueue_sync(
            connection, tenant_id=tenant, key=f"k{n}", specification={}, provider="genace"
        ).operation_id
        for n, tenant in enumerate(("t1", "t2", "t1", "t1"))
    ]
    connection.execute("update coatcheck.operations set phase = 'cancelled' where operation_key = 'k3'")
    connection.commit()

    async def story() -> tuple[list[str], list[str], list[str]]:
        async with library:
            mine = library.for_tenant("t1")
            streamed = [each.operation_id async for each in mine.list()]
            limited = [each.operation_id for each in await mine.list(limit=1)]
            return streamed, limited, [each.operation_id for each in await mine.list(phase="cancelled")]

    # ids order what was made within one millisecond as they like
    mine = sorted((made[0], made[2], made[3]))
    assert asyncio.run(story()) == (mine, mine[:1], [made[3]])
    with pytest.raises(Refused, match="one of prepared"):
        library.for_tenant("t1").list(phase="lost")
    with pytest.raises(Refused):
        library.for_tenant("t1").list(limit=-1)


def test_a_read_survives_a_connection_that_was_cut(library: Coatcheck, database: postgres.Database) -> None:
    async def story() -> None:
        async with library:
            mine = library.for_tenant("t1")
            assert await mine.list() == []
            with database.connect() as admin:
                cut = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'coatcheck library'"
                assert admin.execute(f"{cut} and datname = current_database()").fetchall() == [(True,)]
            assert await mine.list() == []

    asyncio.run(story())


def test_closed_cleanly_it_leaves_no_connection(library: Coatcheck, database: postgres.Database) -> None:
    async def story() -> None:
        async with library:
            await library.for_tenant("t1").list()
            assert _connections(database) == 1
        assert _connections(database) == 0

    asyncio.run(story())


def test_values_are_json_with_the_contracts_names(library: Coatcheck, connection: psycopg.Connection) -> None:
    made = library.enqueue_sync(connection, tenant_id="t1", key="k1", specification=SPECIFICATION, provider="genace")
    connection.commit()
    told = asyncio.run(_get(library, "t1", made.operation_id)).as_json()
    assert list(told) == [field.name for field in dataclasses.fields(Operation)]
    assert str(told["created_at"]).endswith("+00:00")


async def _get(library: Coatcheck, tenant: str, operation_id: str) -> Operation:
    async with library:
        return await library.for_tenant(tenant).get(operation_id)


def _connections(database: postgres.Database) -> int:
    with database.connect() as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where application_name = 'coatcheck library' and datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
