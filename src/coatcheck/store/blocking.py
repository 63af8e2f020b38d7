"""A blocking connection for what runs before or without an event loop: migrations, what a worker checks at its start, one enqueue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from coatcheck.core.operation import Operation, OperationId
from coatcheck.store.connection_room import Room, room_of
from coatcheck.store.db import OPTIONS
from coatcheck.store.operations import Delivery, delivery_of, operation_of
from coatcheck.store.reaching import unreachable
from coatcheck.store.statements import statement


@contextmanager
def connected(url: str, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit for the length of a block. Raises `Unavailable` when the server cannot be reached."""
    try:
        connection = psycopg.connect(url, autocommit=True, application_name=f"coatcheck {name}", **OPTIONS)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error, url) from None
    with connection:
        yield connection


def load(connection: psycopg.Connection[Any], operation_id: OperationId) -> tuple[Operation, list[Delivery]]:
    """One operation that exists, with its outputs, as it stands in the connection's transaction. Raises what psycopg raises.

    Example: `operation, outputs = load(connection, found.operation_id)`.
    """
    parameters = {"operation_id": [operation_id]}
    with connection.cursor(row_factory=dict_row) as cursor:
        (row,) = cursor.execute(statement("store", "load"), parameters).fetchall()
        outputs = cursor.execute(statement("store", "load_deliveries"), parameters).fetchall()
    return operation_of(row), [delivery_of(each) for each in outputs]


def look_for_room(connection: psycopg.Connection[Any]) -> tuple[Room, bool]:
    """How many more connections there may be, and whether a pooler stands before the server, so that this says nothing. Raises what psycopg raises."""
    with connection.cursor(row_factory=dict_row) as cursor:
        (row,) = cursor.execute(statement("store", "inspect_connection_room")).fetchall()
    return room_of(row), row["backend_pid"] != connection.info.backend_pid
