"""Which adapter runs on which connection. Kinds are told by the names of their classes, so that no driver is imported for the asking."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from coatcheck.errors import Refused

# An adapter takes exactly the connections of its kind, which is what `kind_of` has found out.
Blocking = Callable[[Any, str], str]
Waiting = Callable[[Any, str], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of connections that can be borrowed, and the function of this room that runs on it."""

    name: str
    module: str
    function: str
    is_awaited: bool

    def adapter(self) -> object:
        """The function; its driver is loaded by now, since there is a connection of it."""
        return getattr(import_module(f"coatcheck.enqueue.{self.module}"), self.function)


KINDS = {
    name: Kind(name=name, module=module, function=function, is_awaited=is_awaited)
    for name, module, function, is_awaited in (
        ("psycopg.Connection", "on_psycopg", "run", False),
        ("psycopg.AsyncConnection", "on_psycopg", "run_async", True),
        ("asyncpg.connection.Connection", "on_asyncpg", "run_async", True),
        ("asyncpg.pool.PoolConnectionProxy", "on_asyncpg", "run_async", True),
        ("sqlalchemy.engine.base.Connection", "on_sqlalchemy", "run", False),
        ("sqlalchemy.orm.session.Session", "on_sqlalchemy", "run_session", False),
        ("sqlalchemy.orm.scoping.scoped_session", "on_sqlalchemy", "run_session", False),
        ("sqlalchemy.ext.asyncio.engine.AsyncConnection", "on_sqlalchemy", "run_async", True),
        ("sqlalchemy.ext.asyncio.session.AsyncSession", "on_sqlalchemy", "run_async_session", True),
        ("sqlalchemy.ext.asyncio.scoping.async_scoped_session", "on_sqlalchemy", "run_async_session", True),
    )
}


def kind_of(connection: object) -> Kind:
    """The kind of a connection or of a class derived from one. Raises `Refused` for others, naming those that there are."""
    names = [f"{each.__module__}.{each.__qualname__}" for each in type(connection).__mro__]
    known = next((KINDS[name] for name in names if name in KINDS), None)
    if known is None:
        raise Refused(
            f"expected a connection of a kind that coatcheck knows, got {names[0]}",
            next=f"give one of {', '.join(KINDS)}",
        )
    return known


def blocking_adapter(connection: object) -> Blocking:
    """The adapter for a connection that blocks. Raises `Refused` for one that must be awaited."""
    kind = kind_of(connection)
    if kind.is_awaited:
        raise Refused(f"expected a blocking connection, got {kind.name}", next="await enqueue(…) with this connection")
    return cast("Blocking", kind.adapter())


def waiting_adapter(connection: object) -> Waiting:
    """The adapter for a connection that must be awaited. Raises `Refused` for one that blocks."""
    kind = kind_of(connection)
    if not kind.is_awaited:
        raise Refused(
            f"expected an asynchronous connection, got {kind.name}", next="call enqueue_sync(…) with this connection"
        )
    return cast("Waiting", kind.adapter())
