"""A borrowed connection keeps its owner's habits: codecs, factories, pipelines, pools. None of them reaches our statement."""

import asyncio
import subprocess
import sys
import traceback
from typing import Any, NoReturn

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads
from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import Session

import postgres
from coatcheck.enqueue import enqueue, enqueue_sync, prepare
from coatcheck.errors import KeyReused, NoTransaction, Refused, SchemaMismatch

REQUEST = prepare(tenant_id="ada", key="order-7", provider="genace", specification={"prompt": "coat"})


def fails(_: object) -> NoReturn:
    raise AssertionError("the owner's codec has met our statement")


def test_codecs_for_json_of_asyncpg_are_never_met(database: postgres.Database) -> None:
    async def story() -> None:
        connection = await asyncpg.connect(database.url)
        try:
            for name in ("json", "jsonb"):
                await connection.set_type_codec(name, schema="pg_catalog", encoder=fails, decoder=fails)
            async with connection.transaction():
                assert (await enqueue(connection, REQUEST)).created
        finally:
            await connection.close()

    asyncio.run(story())


def test_codecs_and_factories_of_psycopg_are_never_met(database: postgres.Database) -> None:
    with psycopg.connect(database.url, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as connection:
        set_json_loads(fails, connection)
        assert enqueue_sync(connection, REQUEST).created


def test_codecs_of_sqlalchemy_are_never_met(database: postgres.Database) -> None:
    url = make_url(database.url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, json_serializer=fails, json_deserializer=fails)
    with Session(engine) as session, session.begin():
        session.connection(execution_options={"stream_results": True})
        assert enqueue_sync(session, REQUEST).created
    engine.dispose()


def test_a_transaction_block_under_autocommit_is_a_transaction(database: postgres.Database) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        with connection.transaction(), connection.pipeline():
            connection.execute("select 1")
            assert enqueue_sync(connection, REQUEST).created
        with pytest.raises(NoTransaction):
            enqueue_sync(connection, REQUEST)
        with connection.transaction(force_rollback=True):
            assert not enqueue_sync(connection, REQUEST).created


def test_a_savepoint_takes_the_intent_back(database: postgres.Database) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("select 1")
        with connection.transaction(force_rollback=True):
            assert enqueue_sync(connection, REQUEST).created
        assert enqueue_sync(connection, REQUEST).created


def test_a_class_of_the_owners_own_is_known_by_its_parents(database: postgres.Database) -> None:
    class Tenanted(psycopg.Connection[Any]):
        """What a framework makes of a connection."""

    with Tenanted.connect(database.url) as connection:
        assert enqueue_sync(connection, REQUEST).created


def test_an_awaited_connection_is_refused_by_the_blocking_call(database: postgres.Database) -> None:
    async def story() -> None:
        async with await psycopg.AsyncConnection.connect(database.url) as connection:
            with pytest.raises(
                Refused, match=r"expected a blocking connection, got psycopg\.AsyncConnection"
            ) as refused:
                enqueue_sync(connection, REQUEST)
            assert "await enqueue" in refused.value.next

    asyncio.run(story())


def test_a_blocking_connection_is_refused_by_the_awaited_call(database: postgres.Database) -> None:
    with psycopg.connect(database.url) as connection:
        with pytest.raises(Refused, match=r"expected an asynchronous connection, got psycopg\.Connection") as refused:
            asyncio.run(enqueue(connection, REQUEST))
        assert "enqueue_sync" in refused.value.next


@pytest.mark.parametrize("given", [None, "postgresql://", object()])
def test_what_is_no_connection_is_refused_naming_those_that_are(given: object) -> None:
    with pytest.raises(Refused, match="expected a connection of a kind that coatcheck knows") as refused:
        enqueue_sync(given, REQUEST)
    for each in ("psycopg.Connection", "asyncpg.connection.Connection", "sqlalchemy.orm.session.Session"):
        assert each in refused.value.next


def test_psycopg2_under_sqlalchemy_is_served_and_its_autocommit_refused(database: postgres.Database) -> None:
    """Its transaction status is a bare number, and its SQLSTATE has an older name."""
    engine = create_engine(make_url(database.url).set(drivername="postgresql+psycopg2"))
    alone = engine.execution_options(isolation_level="AUTOCOMMIT")
    with alone.connect() as connection, pytest.raises(NoTransaction):
        enqueue_sync(connection, REQUEST)
    with Session(engine) as session, session.begin():
        assert enqueue_sync(session, REQUEST).created
    with alone.connect() as connection:
        connection.exec_driver_sql("begin")
        assert not enqueue_sync(connection, REQUEST).created
        connection.exec_driver_sql("commit")
    with database.connect() as connection:
        connection.execute("drop schema coatcheck cascade")
    with engine.connect() as connection, pytest.raises(SchemaMismatch):
        enqueue_sync(connection, REQUEST)
    engine.dispose()


def test_a_closed_connection_is_not_called_one_in_autocommit(database: postgres.Database) -> None:
    async def story() -> None:
        connection = await asyncpg.connect(database.url)
        await connection.close()
        with pytest.raises(asyncpg.InterfaceError, match="closed"):
            await enqueue(connection, REQUEST)

    asyncio.run(story())


def test_a_reused_key_tells_what_differs_and_a_traceback_shows_the_remedy(database: postgres.Database) -> None:
    with psycopg.connect(database.url) as connection:
        enqueue_sync(connection, REQUEST)
        other = prepare(tenant_id="ada", key="order-7", provider="other", specification={"prompt": "coat"})
        with pytest.raises(KeyReused, match="expected the provider that this key") as reused:
            enqueue_sync(connection, other)
        assert f"Next: {reused.value.next}" in "".join(traceback.format_exception(reused.value))
        other = prepare(tenant_id="ada", key="order-7", provider="genace", specification={"prompt": "hat"})
        with pytest.raises(KeyReused, match="expected the specification that this key"):
            enqueue_sync(connection, other)


def test_another_database_than_postgresql_is_refused() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(Refused, match="got one to sqlite"):
        enqueue_sync(connection, REQUEST)
    engine.dispose()


ONLY_ASYNCPG = """
import asyncio, sys
sys.modules["psycopg"] = sys.modules["sqlalchemy"] = None  # as if they were not installed
import asyncpg
from coatcheck.enqueue import enqueue, prepare
async def story():
    connection = await asyncpg.connect(sys.argv[1])
    async with connection.transaction():
        made = await enqueue(connection, prepare(tenant_id="ada", key="k", provider="genace", specification={}))
    await connection.close()
    print(made.created)
asyncio.run(story())
"""
ONLY_PSYCOPG = """
import sys
sys.modules["asyncpg"] = sys.modules["sqlalchemy"] = None
import psycopg
from coatcheck.enqueue import enqueue_sync, prepare
with psycopg.connect(sys.argv[1]) as connection:
    print(enqueue_sync(connection, prepare(tenant_id="ada", key="k", provider="genace", specification={})).created)
"""
ONLY_BLOCKING_SQLALCHEMY = """
import sys
sys.modules["asyncpg"] = sys.modules["greenlet"] = None
import sqlalchemy
from sqlalchemy.orm import Session
from coatcheck.enqueue import enqueue_sync, prepare
engine = sqlalchemy.create_engine(sqlalchemy.make_url(sys.argv[1]).set(drivername="postgresql+psycopg"))
with Session(engine) as session, session.begin():
    print(enqueue_sync(session, prepare(tenant_id="ada", key="k", provider="genace", specification={})).created)
engine.dispose()
"""


@pytest.mark.parametrize(
    "script",
    [ONLY_ASYNCPG, ONLY_PSYCOPG, ONLY_BLOCKING_SQLALCHEMY],
    ids=["asyncpg", "psycopg", "SQLAlchemy without greenlet"],
)
def test_an_application_needs_only_the_driver_that_it_has(database: postgres.Database, script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, database.url], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "True\n"
