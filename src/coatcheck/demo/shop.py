"""The application: it keeps its own table and enqueues in the same transaction, so an order and its operation exist together or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.demo.orders import PRICE, PROVIDER, Order
from coatcheck.enqueue import Enqueued, EnqueueRequest, enqueue, prepare

_TABLES = (
    "create schema shop",
    "create table shop.orders (tenant_id text not null, number integer primary key, title text not null, operation_id text not null)",
)
_INSERT = "insert into shop.orders (tenant_id, number, title, operation_id) values (%s, %s, %s, %s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An order whose transaction was committed, and the operation that it got."""

    order: Order
    operation_id: OperationId


class Shop:
    """One connection of the application's own, with transactions of its own.

    Example: `placed = await Shop(connection).order(order)`.
    """

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection

    async def open(self) -> None:
        """Make the application's own table."""
        async with self._connection.transaction():
            for statement in _TABLES:
                await self._connection.execute(statement.encode())

    async def order(self, order: Order) -> Placed:
        """One transaction: the order's row and its operation."""
        async with self._connection.transaction():
            enqueued = await self._written(order)
        return Placed(order=order, operation_id=enqueued.operation_id)

    async def order_and_leave(self, order: Order) -> None:
        """The same, rolled back at the last moment: the customer leaves before paying."""
        async with self._connection.transaction():
            await self._written(order)
            raise psycopg.Rollback

    async def order_again(self, order: Order) -> Enqueued:
        """The same key and specification once more, as after a reply to the customer that got lost."""
        async with self._connection.transaction():
            return await enqueue(self._connection, _request(order))

    async def rows(self) -> dict[int, str]:
        """The application's own rows: order number to operation id as text."""
        async with self._connection.transaction():
            cursor = await self._connection.execute("select number, operation_id from shop.orders")
            rows: Iterable[tuple[int, str]] = await cursor.fetchall()
        return dict(rows)

    async def _written(self, order: Order) -> Enqueued:
        enqueued = await enqueue(self._connection, _request(order))
        row = (order.tenant_id, order.number, order.title, operation_text(enqueued.operation_id))
        await self._connection.execute(_INSERT, row)
        return enqueued


def _request(order: Order) -> EnqueueRequest:
    return prepare(
        tenant_id=order.tenant_id,
        key=order.key,
        provider=PROVIDER,
        specification=order.specification,
        estimate=PRICE,
    )
