"""A blocking connection for what runs before or without an event loop: migrations, the schema check, one enqueue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from coatcheck.store.db import OPTIONS, unreachable


@contextmanager
def connected(url: str, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit for the length of a block. Raises `Unavailable` when the server cannot be reached."""
    try:
        connection = psycopg.connect(url, autocommit=True, application_name=f"coatcheck {name}", **OPTIONS)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error) from None
    with connection:
        yield connection
