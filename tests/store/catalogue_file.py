"""Writes src/coatcheck/sql/catalogue.tsv from a migrated database: what the migrations make, object by object.

`python -m store.catalogue_file` in `tests/` prints it; `make catalogue` puts it in its place.
"""

import sys

import psycopg

import postgres
from coatcheck.store import catalogue, schema


def text() -> str:
    """The whole file, made on a server of its own."""
    with postgres.served("18") as server, psycopg.connect(server.url("postgres")) as connection:
        schema.migrate_up(connection)
        return catalogue.written(catalogue.read(connection))


if __name__ == "__main__":
    sys.stdout.write(text())
