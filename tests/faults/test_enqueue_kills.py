"""An application killed or cut off anywhere in its transaction: the order and its operation are both there, or neither is."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from coatcheck.enqueue import Enqueued, enqueue_sync, prepare
from coatcheck.seams import Point
from faults.child import KILLED, Child
from faults.points import FATES, points
from faults.proxy import Cut, Side, cutting
from faults.stage import Stage
from faults.strike import Strike, written
from figures import Report
from waiting import until

GATES = {Point.E2_OPERATION_INSERTED: "operations", Point.E3_OUTBOX_INSERTED: "outbox"}
OTHERS = (
    "select from pg_stat_activity where datname = current_database() and application_name <> 'test'"
    " and backend_type = 'client backend'"
)
WAITS = OTHERS + " and wait_event_type = 'Lock'"


@pytest.fixture(autouse=True)
def orders(stage: Stage) -> None:
    with stage.database.connect() as connection:
        connection.execute("create table orders (number text primary key)")


def application(stage: Stage, *strikes: Strike) -> Child:
    return stage.child("application", [stage.url, written(strikes)], env=os.environ)


@contextmanager
def gate_after(stage: Stage, table: str) -> Iterator[None]:
    """Whoever inserts into the table waits, right after the row is in, until the block ends."""
    with stage.database.connect() as connection:
        connection.execute("select pg_advisory_lock(7)")
        connection.execute(
            "create function wait() returns trigger language plpgsql as"
            " $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$"
        )
        connection.execute(
            f"create trigger gate after insert on coatcheck.{table} for each row execute function wait()".encode()
        )
        yield


def ask_again(stage: Stage, key: str = "order-7", specification: str = "a red bird 7", url: str = "") -> Enqueued:
    with psycopg.connect(url or stage.database.url) as connection:
        connection.execute("insert into orders values (%s) on conflict do nothing", [key])
        request = prepare(tenant_id="ada", key=key, provider="genace", specification={"prompt": specification})
        return enqueue_sync(connection, request)


@pytest.mark.parametrize("point", points("E"))
def test_a_killed_application_left_all_or_nothing_and_may_ask_again(stage: Stage, point: Point) -> None:
    if point in GATES:
        with gate_after(stage, GATES[point]):
            killed = application(stage)
            until(lambda: stage.rows(WAITS))
            killed.kill()
    else:
        killed = application(stage, Strike(point=point))
        assert killed.ended() == KILLED, killed.talk
    until(lambda: not stage.rows(OTHERS))
    tables = ("orders", "coatcheck.operations", "coatcheck.specifications", "coatcheck.history", "coatcheck.outbox")
    kept = {table: stage.one(f"select count(*) from {table}")["count"] for table in tables}
    assert kept == dict.fromkeys(tables, 0 if FATES[point].left is None else 1)
    before = stage.rows("select operation_id from coatcheck.operations")
    again = ask_again(stage)
    assert again.created == (FATES[point].left is None)
    assert not before or before == stage.rows("select operation_id from coatcheck.operations")
    stage.work()
    stage.check()
    assert stage.one("select phase, delivery_state from coatcheck.operations") == {
        "phase": "accepted",
        "delivery_state": "delivered",
    }
    assert len(stage.sim.posts) == 1


def test_a_commit_cut_at_any_byte_left_all_or_nothing_and_the_same_key_finds_it(stage: Stage, figures: Report) -> None:
    shares = [(Side.REQUEST, at / 12) for at in range(12)] + [(Side.REPLY, at / 18) for at in range(18)]
    keys = [f"order-{number}" for number in range(len(shares))]
    cuts = [Cut(side=side, share=share) for side, share in shares]
    with cutting(stage.database.url, b"commit", cuts) as (proxy, url):
        for key in keys:
            with pytest.raises(psycopg.OperationalError):
                ask_again(stage, key, key, url)
        assert proxy.cut_count == len(cuts)
    figures("commit cuts", len(cuts))
    until(lambda: not stage.rows(OTHERS))
    kept = {row["number"] for row in stage.rows("select number from orders")}
    assert kept == {row["operation_key"] for row in stage.rows("select operation_key from coatcheck.operations")}
    assert kept == {key for key, (side, _) in zip(keys, shares, strict=True) if side is Side.REPLY}
    for key in keys:
        assert ask_again(stage, key, key).created == (key not in kept)
    stage.work()
    stage.check()
    assert len(stage.sim.posts) == len(keys)
