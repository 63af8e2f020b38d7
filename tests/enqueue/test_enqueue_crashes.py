"""An application killed at any point of enqueue leaves all of the intent or nothing, and may simply ask again."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import postgres
from coatcheck.enqueue import Enqueued, enqueue_sync, prepare
from coatcheck.seams import Point
from faults.proxy import Cut, Side, cutting
from waiting import until

APPLICATION = """
import os, signal, sys
import psycopg
from coatcheck.enqueue import enqueue_sync, prepare
from coatcheck.seams import Faults, Point

class Killing(Faults):
    def reached(self, point, count=0):
        if point == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGKILL)

faults = Killing()
with psycopg.connect(sys.argv[1]) as connection:
    enqueue_sync(connection, prepare(tenant_id="ada", key="order-7", provider="genace", specification={}), faults=faults)
    connection.commit()
    faults.reached(Point.E5_COMMITTED_BEFORE_REPLY)
"""


def started(database: postgres.Database, point: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", APPLICATION, database.url, point], cwd=Path(__file__).parent)


def rows(database: postgres.Database) -> list[object]:
    with database.connect() as connection:
        # No backend of the killed application is left that could still commit or hold a lock.
        others = "select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        until(lambda: not connection.execute(others).fetchall())
        return [
            connection.execute(f"select count(*) from coatcheck.{table}".encode()).fetchall()[0][0]
            for table in ("operations", "specifications", "outbox", "history")
        ]


def created_by_asking_again(database: postgres.Database) -> bool:
    with psycopg.connect(database.url) as connection:
        return enqueue_sync(
            connection, prepare(tenant_id="ada", key="order-7", provider="genace", specification={})
        ).created


@pytest.mark.parametrize("point", [Point.E1_BEFORE_BEGIN, Point.E3_OUTBOX_INSERTED])
def test_killed_before_its_commit_it_leaves_nothing(database: postgres.Database, point: Point) -> None:
    assert started(database, point).wait(timeout=60) == -9
    assert rows(database) == [0, 0, 0, 0]
    assert created_by_asking_again(database)


def test_killed_between_the_inserts_it_leaves_nothing(database: postgres.Database) -> None:
    """At E2, which lies within the statement: the operation is inserted, and the specification waits for a table."""
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with database.connect() as watch, database.connect() as gate, gate.transaction():
        gate.execute("lock table coatcheck.specifications in share mode")
        application = started(database, "none")
        try:
            until(lambda: len(watch.execute(waiting).fetchall()) == 1)
        finally:
            application.kill()
            application.wait(timeout=60)
    assert rows(database) == [0, 0, 0, 0]
    assert created_by_asking_again(database)


def test_killed_after_its_commit_it_finds_its_operation(database: postgres.Database) -> None:
    assert started(database, Point.E5_COMMITTED_BEFORE_REPLY).wait(timeout=60) == -9
    assert rows(database) == [1, 1, 1, 1]
    assert not created_by_asking_again(database)


def test_to_ask_again_with_the_same_key_tells_what_became_of_a_commit_that_nobody_saw(
    database: postgres.Database,
) -> None:
    """Lost, it is made now; there, it is found; still under way, it is waited for. It is the same operation each time."""
    request = prepare(tenant_id="ada", key="order-7", provider="genace", specification={})
    cuts = [Cut(side=Side.REQUEST, share=0.5), Cut(side=Side.REPLY, share=0.0)]
    answers: list[Enqueued] = []
    with cutting(database.url, b"commit", cuts) as (proxy, url):
        for _ in cuts:
            with pytest.raises(psycopg.OperationalError), psycopg.connect(url) as connection:
                answers.append(enqueue_sync(connection, request))
        assert proxy.cut_count == len(cuts)
    with psycopg.connect(database.url) as connection:
        found = enqueue_sync(connection, request)
    # what was lost was another row; what was committed unseen is what is found
    assert [answer.operation_id == found.operation_id for answer in answers] == [False, True]
    assert not found.created
    assert rows(database) == [1, 1, 1, 1]


def test_to_ask_again_waits_for_a_commit_that_is_under_way(database: postgres.Database) -> None:
    request = prepare(tenant_id="ada", key="order-7", provider="genace", specification={})
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

    def asked_again() -> Enqueued:
        with psycopg.connect(database.url) as connection:
            return enqueue_sync(connection, request)

    with database.connect() as watch, psycopg.connect(database.url) as connection, ThreadPoolExecutor(1) as pool:
        made = enqueue_sync(connection, request)
        asking = pool.submit(asked_again)
        until(lambda: watch.execute(waiting).fetchall())
        connection.commit()
        assert asking.result(timeout=20) == replace(made, created=False)
