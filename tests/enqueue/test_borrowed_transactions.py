"""The same stories with every kind of borrowed connection: the intent lives and dies with the caller's own transaction."""

import asyncio
import hashlib
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

import postgres
from coatcheck.core.fingerprint import fingerprint
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Phase
from coatcheck.enqueue import EnqueueRequest, enqueue_sync, prepare
from coatcheck.errors import KeyReused, NoTransaction, Refused, SchemaMismatch
from enqueue.borrowed import OPENERS, Opener, Wish
from waiting import until_async

TABLES = ("operations", "specifications", "outbox", "history")
SECRET = "s3cret-prompt"


@pytest.fixture(params=list(OPENERS))
def opener(request: pytest.FixtureRequest) -> Opener:
    return OPENERS[request.param]


@pytest.fixture(scope="module")
def street(template: postgres.Template) -> Iterator[postgres.Database]:
    """One database for all stories of this module, in which the application has a table of its own."""
    with template.copy() as made:
        with made.connect() as connection:
            connection.execute("create table orders (name text primary key)")
        yield made


@pytest.fixture
def shop(street: postgres.Database) -> postgres.Database:
    """The same, emptied."""
    with street.connect() as connection:
        connection.execute(f"truncate orders, {', '.join(f'coatcheck.{each}' for each in TABLES)}".encode())
    return street


def request(
    key: str = "order-7", *, tenant: str = "ada", prompt: Any = SECRET, provider: str = "genace"
) -> EnqueueRequest:
    return prepare(tenant_id=tenant, key=key, provider=provider, specification={"prompt": prompt}, estimate="1.50")


def counted(database: postgres.Database) -> list[int]:
    """The number of rows in each of our tables, and of the application's orders."""
    with database.connect() as connection:
        found = [connection.execute(f"select count(*) from coatcheck.{each}".encode()).fetchone() for each in TABLES]
        found.append(connection.execute("select count(*) from orders").fetchone())
    return [int(str(row[0])) for row in found if row is not None]


async def waits_for_a_lock(database: postgres.Database) -> None:
    with database.connect() as connection:

        def holds() -> bool:
            found = connection.execute(
                "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            )
            return len(found.fetchall()) == 1

        await until_async(holds)


def sqlstate(error: BaseException) -> object:
    return getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)


def test_a_commit_keeps_the_intent_and_the_callers_write(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            await caller.execute("insert into orders values ('seven')")
            made = await caller.enqueue(request())
            assert counted(shop) == [0, 0, 0, 0, 0]
            await caller.commit()
        assert counted(shop) == [1, 1, 1, 1, 1]
        assert (made.created, made.revision, made.phase) == (True, 0, Phase.PREPARED)
        assert made.specification_hash == fingerprint({"prompt": SECRET}).sha256_hex
        with shop.connect() as connection:
            row = connection.execute(
                "select operation_id, tenant_id, operation_key, estimate::text from coatcheck.operations"
            ).fetchone()
        assert row == (made.operation_id, "ada", "order-7", "1.50")

    asyncio.run(story())


def test_a_rollback_leaves_nothing(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            await caller.execute("insert into orders values ('seven')")
            await caller.enqueue(request())
            await caller.rollback()
        assert counted(shop) == [0, 0, 0, 0, 0]

    asyncio.run(story())


def test_the_same_intent_again_is_the_same_operation(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            first = await caller.enqueue(request())
            again = await caller.enqueue(request())
            await caller.commit()
        assert (first.created, again.created) == (True, False)
        assert again.operation_id == first.operation_id
        assert counted(shop) == [1, 1, 1, 1, 0]

    asyncio.run(story())


def test_a_reused_key_is_refused_and_the_transaction_goes_on(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            made = await caller.enqueue(request())
            await caller.execute("insert into orders values ('before')")
            for other in (request(prompt="another"), request(provider="other")):
                with pytest.raises(KeyReused, match=operation_text(made.operation_id)) as refused:
                    await caller.enqueue(other)
                assert (refused.value.code, refused.value.exit_code) == ("key_reused", 2)
                assert SECRET not in "".join(traceback.format_exception(refused.value))
            await caller.execute("insert into orders values ('after')")
            await caller.commit()
        assert counted(shop) == [1, 1, 1, 1, 2]

    asyncio.run(story())


def test_the_key_of_another_tenant_is_another_key(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            one = await caller.enqueue(request(tenant="ada"))
            other = await caller.enqueue(request(tenant="bob", prompt="another"))
            await caller.commit()
        assert one.created
        assert other.created
        assert one.operation_id != other.operation_id

    asyncio.run(story())


@pytest.mark.parametrize("winner_commits", [True, False])
def test_of_two_sessions_with_one_key_one_creates(
    shop: postgres.Database, opener: Opener, winner_commits: bool
) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as winner, opener(Wish(url=shop.url)) as loser:
            made = await winner.enqueue(request())
            waiting = asyncio.ensure_future(loser.enqueue(request()))
            await waits_for_a_lock(shop)
            await (winner.commit() if winner_commits else winner.rollback())
            found = await asyncio.wait_for(waiting, 30)
            await loser.commit()
        assert found.created is not winner_commits
        assert (found.operation_id == made.operation_id) is winner_commits
        assert counted(shop) == [1, 1, 1, 1, 0]

    asyncio.run(story())


def test_at_repeatable_read_the_loser_reruns(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as winner, opener(Wish(url=shop.url, repeatable_read=True)) as loser:
            await loser.execute("select count(*) from orders")  # takes the snapshot
            made = await winner.enqueue(request())
            await winner.commit()
            with pytest.raises(Exception, match="could not serialize") as lost:
                await loser.enqueue(request())
            assert sqlstate(lost.value) == "40001"
            assert SECRET not in "".join(traceback.format_exception(lost.value))
            await loser.rollback()
        async with opener(Wish(url=shop.url, repeatable_read=True)) as loser:
            found = await loser.enqueue(request())
            await loser.commit()
        assert (found.created, found.operation_id) == (False, made.operation_id)

    asyncio.run(story())


def test_autocommit_is_refused_before_anything_is_written(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url, autocommit=True)) as caller:
            with pytest.raises(NoTransaction, match="autocommit") as refused:
                await caller.enqueue(request())
            assert refused.value.code == "no_transaction"
            assert len(refused.value.next.splitlines()) == 4
            await caller.execute("insert into orders values ('alone')")
        assert counted(shop) == [0, 0, 0, 0, 1]

    asyncio.run(story())


def test_a_transaction_begun_by_hand_under_autocommit_is_a_transaction(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url, autocommit=True)) as caller:
            await caller.execute("begin")
            await caller.enqueue(request())
            assert counted(shop) == [0, 0, 0, 0, 0]
            await caller.execute("commit")
        assert counted(shop) == [1, 1, 1, 1, 0]

    asyncio.run(story())


def test_a_transaction_that_has_failed_is_refused(shop: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            with pytest.raises(Exception, match="division by zero"):
                await caller.execute("select 1/0")
            with pytest.raises(NoTransaction, match="in which a statement has failed") as refused:
                await caller.enqueue(request())
            assert "roll back" in refused.value.next
            await caller.rollback()
        assert counted(shop) == [0, 0, 0, 0, 0]

    asyncio.run(story())


HOSTILE: tuple[Any, ...] = (
    'it\'s "quoted" \\ $1 %s :request {} -- ;',
    "emoji \U0001f9e5 \u00e9 \u4e2d \U0010ffff",
    "controls \x01\x1f\x7f\u2028\u2029\ufeff",
    1e308,
    -0.0,
    5e-324,
    [],
    {"": None},
    "x" * 500_000,
)


def test_stored_bytes_are_the_hashed_text_byte_for_byte(shop: postgres.Database, opener: Opener) -> None:
    names = ('it\'s "q" \\ $1 %s :request', "\U0001f9e5\u00e9", "\x01\x7f", "a" * 255, "\u00e9" * 127)

    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            for number, prompt in enumerate(HOSTILE):
                await caller.enqueue(request(f"order-{number}", prompt=prompt))
            for name in names:
                await caller.enqueue(request(name, tenant=name))
            await caller.commit()

    asyncio.run(story())
    with shop.connect() as connection:
        stored: dict[Any, Any] = dict(
            connection.execute(
                "select operation_key, (convert_to(specification_text, 'UTF8'), specification_hash)::text"
                " from coatcheck.operations join coatcheck.specifications using (operation_id)"
            ).fetchall()
        )
    for number, prompt in enumerate(HOSTILE):
        text = fingerprint({"prompt": prompt}).text.encode()
        assert stored[f"order-{number}"] == f'("\\\\x{text.hex()}","\\\\x{hashlib.sha256(text).hexdigest()}")'
    assert set(names) < set(stored)


def test_nothing_of_the_specification_reaches_a_log(
    shop: postgres.Database, opener: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def story() -> None:
        async with opener(Wish(url=shop.url, echo=True)) as caller:
            await caller.enqueue(request())
            await caller.commit()

    asyncio.run(story())
    assert SECRET not in caplog.text


def test_a_database_that_was_not_migrated_says_so(database: postgres.Database, opener: Opener) -> None:
    async def story() -> None:
        async with opener(Wish(url=database.url)) as caller:
            with pytest.raises(SchemaMismatch, match="without it") as refused:
                await caller.enqueue(request())
            assert "migrate up" in refused.value.next

    with database.connect() as connection:
        connection.execute("drop schema coatcheck cascade")
    asyncio.run(story())


def test_a_role_may_enqueue_once_it_has_the_applications_role(shop: postgres.Database, opener: Opener) -> None:
    role = f"app_{shop.name}"

    async def story() -> None:
        async with opener(Wish(url=shop.url)) as caller:
            await caller.execute(f"set role {role}")
            with pytest.raises(Refused, match="a role that may execute"):
                await caller.enqueue(request())
            await caller.rollback()
        with shop.connect() as connection:
            connection.execute(f"grant coatcheck_app to {role}".encode())
        async with opener(Wish(url=shop.url)) as caller:
            await caller.execute(f"set role {role}")
            assert (await caller.enqueue(request())).created
            await caller.commit()

    with shop.connect() as connection:
        connection.execute(f"create role {role}".encode())
        try:
            asyncio.run(story())
        finally:
            connection.execute(f"drop role {role}".encode())
    assert counted(shop) == [1, 1, 1, 1, 0]


def test_the_test_tables_are_all_that_a_creation_writes(shop: postgres.Database) -> None:
    """The counts above look everywhere: no table of the schema but these four gains a row."""
    with psycopg.connect(shop.url) as connection:
        before = everything(connection)
        enqueue_sync(connection, request())
        gained = {name for name, rows in everything(connection).items() if rows != before[name]}
    assert gained == set(TABLES)


def everything(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    names = [
        str(row[0])
        for row in connection.execute("select tablename from pg_tables where schemaname = 'coatcheck'").fetchall()
    ]
    return {name: connection.execute(f"select count(*) from coatcheck.{name}".encode()).fetchone() for name in names}
