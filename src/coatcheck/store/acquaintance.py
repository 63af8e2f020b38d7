"""Whether a provider was ever named to the database. No rule rests on it: an operation waits for a worker that has its provider, however late."""

from typing import Any

import psycopg

from coatcheck.store.statements import statement


def is_known(connection: psycopg.Connection[Any], provider: str) -> bool:
    """Whether any worker or person named it yet, as `is_known(connection, "genace")`. Raises what psycopg raises."""
    row = connection.execute(statement("store", "is_known"), {"name": provider}).fetchone()
    return row is not None and bool(row[0])
