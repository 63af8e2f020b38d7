"""Every kind of connection that an application may lend, behind one face, so that one suite tells the same stories with each.

Blocking ones run in a thread, so that two sessions can race in one test whatever their colour.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from coatcheck.enqueue import Enqueued, EnqueueRequest, enqueue, enqueue_sync


@dataclass(frozen=True, kw_only=True)
class Borrowed:
    """One session of an application. `connection` is what coatcheck is given."""

    connection: Any
    execute: Callable[[str], Awaitable[Any]]
    commit: Callable[[], Awaitable[Any]]
    rollback: Callable[[], Awaitable[Any]]
    enqueue: Callable[[EnqueueRequest], Awaitable[Enqueued]]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a session is to be opened."""

    url: str
    autocommit: bool = False
    repeatable_read: bool = False
    echo: bool = False

    @property
    def isolation(self) -> str:
        return "repeatable read" if self.repeatable_read else "read committed"

    @property
    def options(self) -> str:
        return f"-c default_transaction_isolation={self.isolation.replace(' ', chr(92) + ' ')}"

    def engine_arguments(self, driver: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "url": make_url(self.url).set(drivername=f"postgresql+{driver}"),
            "echo": self.echo,
        }
        if driver == "psycopg":
            arguments["connect_args"] = {"options": self.options}
        else:
            arguments["connect_args"] = {"server_settings": {"default_transaction_isolation": self.isolation}}
        if self.autocommit:
            arguments["isolation_level"] = "AUTOCOMMIT"
        return arguments


Opener = Callable[[Wish], AbstractAsyncContextManager[Borrowed]]


def in_a_thread(
    connection: Any, execute: Callable[[str], Any], commit: Callable[[], Any], rollback: Callable[[], Any]
) -> Borrowed:
    return Borrowed(
        connection=connection,
        execute=lambda statement: asyncio.to_thread(execute, statement),
        commit=lambda: asyncio.to_thread(commit),
        rollback=lambda: asyncio.to_thread(rollback),
        enqueue=lambda request: asyncio.to_thread(enqueue_sync, connection, request),
    )


def awaited(
    connection: Any,
    execute: Callable[[str], Awaitable[Any]],
    commit: Callable[[], Awaitable[Any]],
    rollback: Callable[[], Awaitable[Any]],
) -> Borrowed:
    return Borrowed(
        connection=connection,
        execute=execute,
        commit=commit,
        rollback=rollback,
        enqueue=lambda request: enqueue(connection, request),
    )


@asynccontextmanager
async def of_psycopg(wish: Wish) -> AsyncIterator[Borrowed]:
    with psycopg.connect(wish.url, autocommit=wish.autocommit, options=wish.options) as connection:
        yield in_a_thread(
            connection, lambda each: connection.execute(each.encode()), connection.commit, connection.rollback
        )


@asynccontextmanager
async def of_psycopg_async(wish: Wish) -> AsyncIterator[Borrowed]:
    opening = psycopg.AsyncConnection.connect(wish.url, autocommit=wish.autocommit, options=wish.options)
    async with await opening as connection:
        yield awaited(
            connection, lambda each: connection.execute(each.encode()), connection.commit, connection.rollback
        )


@asynccontextmanager
async def of_asyncpg(wish: Wish) -> AsyncIterator[Borrowed]:
    settings = {"default_transaction_isolation": wish.isolation}
    connection = await asyncpg.connect(wish.url, server_settings=settings)
    try:
        if not wish.autocommit:
            await connection.execute("begin")
        yield awaited(
            connection, connection.execute, lambda: connection.execute("commit"), lambda: connection.execute("rollback")
        )
    finally:
        await connection.close()


@asynccontextmanager
async def of_asyncpg_pool(wish: Wish) -> AsyncIterator[Borrowed]:
    settings = {"default_transaction_isolation": wish.isolation}
    async with (
        asyncpg.create_pool(wish.url, min_size=1, max_size=1, server_settings=settings) as pool,
        pool.acquire() as lent,
    ):
        if not wish.autocommit:
            await lent.execute("begin")
        yield awaited(lent, lent.execute, lambda: lent.execute("commit"), lambda: lent.execute("rollback"))
        if lent.is_in_transaction():
            await lent.execute("rollback")


@contextmanager
def engine_of(wish: Wish) -> Iterator[Engine]:
    engine = create_engine(**wish.engine_arguments("psycopg"))
    try:
        yield engine
    finally:
        engine.dispose()


@asynccontextmanager
async def async_engine_of(wish: Wish, driver: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(**wish.engine_arguments(driver))
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def of_sqlalchemy(wish: Wish) -> AsyncIterator[Borrowed]:
    with engine_of(wish) as engine, engine.connect() as connection:
        yield in_a_thread(
            connection, lambda each: connection.execute(text(each)), connection.commit, connection.rollback
        )


@asynccontextmanager
async def of_sqlalchemy_session(wish: Wish) -> AsyncIterator[Borrowed]:
    with engine_of(wish) as engine, Session(engine) as session:
        yield in_a_thread(session, lambda each: session.execute(text(each)), session.commit, session.rollback)


@asynccontextmanager
async def of_sqlalchemy_scoped(wish: Wish) -> AsyncIterator[Borrowed]:
    with engine_of(wish) as engine:
        session = scoped_session(sessionmaker(engine), scopefunc=lambda: 0)
        try:
            yield in_a_thread(session, lambda each: session.execute(text(each)), session.commit, session.rollback)
        finally:
            session.remove()


def of_sqlalchemy_async(driver: str) -> Opener:
    @asynccontextmanager
    async def opened(wish: Wish) -> AsyncIterator[Borrowed]:
        async with async_engine_of(wish, driver) as engine, engine.connect() as connection:
            yield awaited(
                connection, lambda each: connection.execute(text(each)), connection.commit, connection.rollback
            )

    return opened


def of_sqlalchemy_async_session(driver: str) -> Opener:
    @asynccontextmanager
    async def opened(wish: Wish) -> AsyncIterator[Borrowed]:
        async with async_engine_of(wish, driver) as engine, AsyncSession(engine) as session:
            yield awaited(session, lambda each: session.execute(text(each)), session.commit, session.rollback)

    return opened


@asynccontextmanager
async def of_sqlalchemy_async_scoped(wish: Wish) -> AsyncIterator[Borrowed]:
    async with async_engine_of(wish, "asyncpg") as engine:
        session = async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: 0)
        try:
            yield awaited(session, lambda each: session.execute(text(each)), session.commit, session.rollback)
        finally:
            await session.remove()


OPENERS: dict[str, Opener] = {
    "psycopg Connection": of_psycopg,
    "psycopg AsyncConnection": of_psycopg_async,
    "asyncpg Connection": of_asyncpg,
    "asyncpg pool": of_asyncpg_pool,
    "SQLAlchemy Connection": of_sqlalchemy,
    "SQLAlchemy Session": of_sqlalchemy_session,
    "SQLAlchemy scoped_session": of_sqlalchemy_scoped,
    "SQLAlchemy AsyncConnection psycopg": of_sqlalchemy_async("psycopg"),
    "SQLAlchemy AsyncConnection asyncpg": of_sqlalchemy_async("asyncpg"),
    "SQLAlchemy AsyncSession psycopg": of_sqlalchemy_async_session("psycopg"),
    "SQLAlchemy AsyncSession asyncpg": of_sqlalchemy_async_session("asyncpg"),
    "SQLAlchemy async_scoped_session asyncpg": of_sqlalchemy_async_scoped,
}
