"""Every shipped migration while an application enqueues and workers work: it has its locks within seconds, or gives up with nothing half done."""

import logging
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

import postgres
from coatcheck.errors import Unavailable
from coatcheck.store import catalogue, schema
from coatcheck.store.migrations import TABLE_WAIT_S, Migration, shipped
from coatcheck.store.schema import State
from store.traffic import Traffic, flowing
from waiting import until

STALL_S = 1.0
"""What an application may have to wait for a migration, on a machine that does other things as well; measured: 0.08 s."""
LATER = [pytest.param(each, id=f"{each.number:04}") for each in shipped()[1:]]


@pytest.fixture
def before(empty: postgres.Template) -> Iterator[Callable[[Migration], postgres.Database]]:
    """A database at the version before a migration."""
    with empty.copy() as made:

        def at(migration: Migration) -> postgres.Database:
            with psycopg.connect(made.url) as connection:
                schema.migrate_up(connection, migrations=shipped()[: migration.number - 1])
            return made

        yield at


def flows(traffic: Traffic) -> None:
    """Until more has been enqueued and accepted than before."""
    enqueued, accepted = traffic.enqueued, traffic.accepted
    until(lambda: traffic.enqueued > enqueued + 20 and traffic.accepted > accepted + 20)


def told(where: str, migration: Migration, traffic: Traffic, took_s: float) -> None:
    """Figures, for who asks with --log-cli-level=info."""
    logging.getLogger(__name__).info(
        "%s %04d: applied in %.3f s, longest stall %.3f s, deadlocks %d, enqueued %d, accepted %d",
        *(where, migration.number, took_s, traffic.longest_s, len(traffic.refused), traffic.enqueued, traffic.accepted),
    )


@pytest.mark.parametrize("migration", LATER)
def test_a_migration_under_load_holds_nobody_up_for_long(
    before: Callable[[Migration], postgres.Database], migration: Migration
) -> None:
    database = before(migration)
    with flowing(database) as traffic, psycopg.connect(database.url) as connection:
        flows(traffic)
        traffic.longest_s = 0.0
        began_s = time.monotonic()
        (applied,) = schema.migrate_up(connection, migrations=shipped()[: migration.number])
        took_s = time.monotonic() - began_s
        flows(traffic)
    told("under load", migration, traffic, took_s)
    assert applied.number == migration.number
    assert traffic.longest_s < STALL_S
    assert traffic.refused == []


@pytest.mark.parametrize("migration", LATER)
def test_a_forgotten_transaction_makes_a_migration_give_up_and_the_next_run_succeeds(
    before: Callable[[Migration], postgres.Database], migration: Migration
) -> None:
    """It has read every table and sleeps. Whoever queues behind an attempt goes on when that lets go."""
    database = before(migration)
    known = shipped()[: migration.number]
    with flowing(database) as traffic, database.connect() as forgotten, psycopg.connect(database.url) as connection:
        flows(traffic)
        with forgotten.transaction():
            for (table,) in forgotten.execute(
                "select tablename from pg_tables where schemaname = 'coatcheck' and tablename <> 'schema_migrations'"
            ).fetchall():
                forgotten.execute(f"select from coatcheck.{table} limit 1".encode())
            left = catalogue.read(connection)
            began_s = time.monotonic()
            with pytest.raises(Unavailable, match="expected a lock within 5 s") as refused:
                schema.migrate_up(connection, migrations=known)
            assert time.monotonic() - began_s >= TABLE_WAIT_S
            assert "pg_stat_activity" in refused.value.next
            assert catalogue.read(connection) == left
            assert schema.migrate_status(connection, migrations=known)[-1].state is State.PENDING
            flows(traffic)
        began_s = time.monotonic()
        schema.migrate_up(connection, migrations=known)
        took_s = time.monotonic() - began_s
        flows(traffic)
    told("beside a forgotten transaction", migration, traffic, took_s)
    assert traffic.longest_s < STALL_S
    assert traffic.refused == []
