"""Every shipped migration, ended after each of its statements: whole migrations are left, and the next runner finishes them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from threading import Barrier

import psycopg
import pytest

import postgres
from coatcheck.devdb import DevPostgres
from coatcheck.store import catalogue, schema
from coatcheck.store.migrations import Migration, required_version, script, shipped
from coatcheck.store.schema import State
from store.statements_of import statements_of
from waiting import until

GATE = "select pg_advisory_xact_lock_shared(1);"
RUNNER = """
import json, sys, psycopg
from coatcheck.store import schema
from coatcheck.store.migrations import Migration
known = [Migration(**each) for each in json.load(sys.stdin)]
with psycopg.connect(sys.argv[1], application_name="runner") as connection:
    schema.migrate_up(connection, migrations=known)
"""
PLACES = [
    pytest.param(each, place, id=f"{each.number:04}-after-{place}")
    for each in shipped()
    for place in range(len(statements_of(each.sql)) + 1)
]


@pytest.fixture(scope="module")
def steps(server: DevPostgres) -> Iterator[dict[int, postgres.Template]]:
    """A template at each version, beginning with none."""
    made: dict[int, postgres.Template] = {}
    try:
        for number in range(required_version()):
            made[number] = postgres.Template(server, migrated=False)
            with psycopg.connect(server.url(made[number]._name)) as connection:
                schema.migrate_up(connection, migrations=shipped()[:number])
        yield made
    finally:
        for each in made.values():
            each.close()


def gated(migration: Migration, place: int) -> Migration:
    """The migration with a gate after so many of its statements."""
    parts = statements_of(migration.sql)
    return replace(migration, sql="".join([*parts[:place], GATE, *parts[place:]]))


def whole(database: postgres.Database) -> list[int]:
    with database.connect() as connection:
        return [each.number for each in schema.migrate_status(connection) if each.state is State.APPLIED]


def objects(database: postgres.Database) -> int:
    """How many objects there are, of any kind, the bookkeeping apart."""
    with database.connect() as connection:
        return len(catalogue.read(connection))


@pytest.mark.parametrize(("migration", "place"), PLACES)
def test_killed_after_each_statement(steps: dict[int, postgres.Template], migration: Migration, place: int) -> None:
    known = [*shipped()[: migration.number - 1], gated(migration, place)]
    before = [each.number for each in shipped()[: migration.number - 1]]
    with steps[migration.number - 1].copy() as database, database.connect() as gate:
        there = objects(database)
        gate.execute("select pg_advisory_lock(1)")
        with subprocess.Popen([sys.executable, "-c", RUNNER, database.url], stdin=subprocess.PIPE) as child:
            assert child.stdin is not None
            child.stdin.write(json.dumps([asdict(each) for each in known]).encode())
            child.stdin.close()
            try:
                until(lambda: gate.execute("select from pg_stat_activity where datname = current_database()"
                      " and wait_event = 'advisory'").rowcount == 1)  # fmt: skip
            finally:
                child.kill()
        # The server goes on with what it was sent; nobody is left to commit it.
        gate.execute("select pg_advisory_unlock(1)")
        until(lambda: gate.execute("select from pg_stat_activity where datname = current_database()"
              " and application_name = 'runner'").rowcount == 0)  # fmt: skip
        assert (whole(database), objects(database)) == (before, there)
        with psycopg.connect(database.url) as connection:
            schema.migrate_up(connection)
            assert catalogue.inspect(connection).findings == []


@pytest.mark.parametrize("way", ["migrate up", "migrate sql"])
@pytest.mark.parametrize("count", [2, 5])
def test_several_runners_at_once_apply_each_migration_once(
    steps: dict[int, postgres.Template], count: int, way: str
) -> None:
    starting = Barrier(count)

    def run(number: int) -> list[int]:
        with psycopg.connect(database.url, autocommit=True) as connection:
            starting.wait(timeout=30)
            if way == "migrate sql" and number:
                connection.execute(script(0).encode())
                return []
            return [each.number for each in schema.migrate_up(connection)]

    with steps[0].copy() as database, ThreadPoolExecutor(count) as pool:
        applied = [number for each in pool.map(run, range(count)) for number in each]
        assert len(applied) == len(set(applied))
        if way == "migrate up":
            assert sorted(applied) == [each.number for each in shipped()]
        assert whole(database) == [each.number for each in shipped()]
        with database.connect() as connection:
            assert catalogue.inspect(connection).findings == []
