"""A claim leases what is due, never more than was asked for, never to two, whatever the planner makes of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from threading import Barrier
from typing import Any, LiteralString

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.store.statements import statement
from figures import Report
from store.ground import ACCOUNT, Ground

ROWS: LiteralString = """
insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at, tenant_id, precedence)
select coatcheck.new_id(), 0, action, 'genace', null, 0, coatcheck.lease_now() - make_interval(secs => n),
  case when n %% 5 > 0 then 't' || n %% 5 else '' end, n %% 3
from generate_series(1, %s) as n, unnest(array['dispatch', 'observe', 'reconcile']) as action"""
SWITCHES = ("enable_hashjoin", "enable_mergejoin", "enable_material", "enable_hashagg", "enable_sort")
POPULAR: LiteralString = """
update coatcheck.outbox as held set lease_count = lease_count + 1
where operation_id in (
  select operation_id from coatcheck.outbox where action = 'dispatch' and parked_at is null limit 7 for update skip locked)
returning held.action"""
ROOM = 7
SUSPECT, HAS_SUSPECTS = 15, 21
"""Where a claimed row says that it was taken alone."""


def taken(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What was claimed, without what the claim says of its kinds."""
    return [row for row in rows if row[0] is not None]


def wanted(room: int) -> dict[str, Any]:
    """A claim of `room` dispatches and `room` looks, and as many ended dispatches."""
    return {
        "action": ["dispatch", "observe"],
        "provider": ["genace", "genace"],
        "account": ["genace", "genace"],
        "room": [room, room],
        "reserve": [0, 0],
        "lease_s": [30.0, 30.0],
        "after_tenant": ["", ""],
        "after_precedence": [-32768, -32768],
        "served_action": [],
        "served_tenant": [],
        "schema_version": [1],
        "doubts": room,
        "doubt_lease_s": 30.0,
        "lookup_provider": [],
        "lookup_account": [],
        "is_free": True,
        "away_from_s": None,
        "away_until_s": None,
        "told_limit": ROOM,
        "text_limit_bytes": 1000,
        "answer_limit_bytes": 200_000,
        "row_bytes": 650,
        "worker": "w",
    }


@contextmanager
def undone(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Whatever happens in the block is rolled back, settings included."""
    with connection.transaction(force_rollback=True):
        yield


@pytest.mark.parametrize("plan", ["custom", "generic"])
@pytest.mark.parametrize("statistics", ["empty", "stale", "fresh"])
def test_a_claim_never_takes_more_than_it_has_room_for(
    database: postgres.Database, statistics: str, plan: str, figures: Report
) -> None:
    """Under all 32 settings of what the planner may use."""
    with database.connect() as connection:
        connection.execute("alter table coatcheck.outbox set (autovacuum_enabled = false)")
        if statistics == "stale":
            connection.execute(ROWS, [3])
            connection.execute("analyze coatcheck.outbox")
        connection.execute(ROWS, [500])
        if statistics == "fresh":
            connection.execute("analyze coatcheck.outbox")
        for switches in product(("on", "off"), repeat=len(SWITCHES)):
            with undone(connection):
                for name, value in zip(SWITCHES, switches, strict=True):
                    connection.execute(f"set local {name} = {value}".encode())
                connection.execute(f"set local plan_cache_mode = force_{plan}_plan".encode())
                claimed = connection.execute(
                    statement("queue", "claim").encode(), wanted(ROOM), prepare=True
                ).fetchall()
                actions = sorted(str(row[2]) for row in claimed if row[0] is not None)
                assert actions == [*["dispatch"] * ROOM, *["observe"] * ROOM, *["reconcile"] * ROOM], switches
                assert len({row[0] for row in taken(claimed)}) == 3 * ROOM
                figures("planner settings tried", 1)


SUSPECTS: LiteralString = """
update coatcheck.outbox set leased_by = 'killed', leased_at = now() - interval '1 h', lease_count = 2
where lane = 0 and lease_token % 50 = 0 and action <> 'reconcile'"""


@pytest.mark.parametrize("plan", ["custom", "generic"])
def test_a_suspect_is_taken_alone_under_every_plan_and_only_by_who_has_nothing_in_hand(
    database: postgres.Database, plan: str, figures: Report
) -> None:
    with database.connect() as connection:
        connection.execute(ROWS, [500])
        connection.execute(SUSPECTS)
        for switches in product(("on", "off"), repeat=len(SWITCHES)):
            with undone(connection):
                for name, value in zip(SWITCHES, switches, strict=True):
                    connection.execute(f"set local {name} = {value}".encode())
                connection.execute(f"set local plan_cache_mode = force_{plan}_plan".encode())
                connection.execute("set local synchronous_commit = off")
                text = statement("queue", "claim").encode()
                alone = taken(connection.execute(text, wanted(ROOM), prepare=True).fetchall())
                assert [row[SUSPECT] for row in alone] == [True], switches
                others = taken(connection.execute(text, {**wanted(ROOM), "is_free": False}, prepare=True).fetchall())
                assert len(others) == 3 * ROOM
                assert {(row[SUSPECT], row[HAS_SUSPECTS]) for row in others} == {(False, True)}
                figures("planner settings tried", 1)


def test_the_popular_shape_takes_everything_under_some_plan(database: postgres.Database) -> None:
    """So the trial above can fail: a sub-select in the condition is run again for every outer row, and each run locks the next rows."""
    off = ("hashjoin", "mergejoin", "material", "hashagg", "sort", "indexscan", "indexonlyscan", "bitmapscan")
    with database.connect() as connection, undone(connection):
        connection.execute(ROWS, [200])
        for name in off:
            connection.execute(f"set local enable_{name} = off".encode())
        assert len(connection.execute(POPULAR).fetchall()) == 200


def test_concurrent_claimers_share_the_rows_and_no_two_get_the_same(
    database: postgres.Database, ground: Ground
) -> None:
    ground.sql("alter table coatcheck.outbox set (autovacuum_enabled = false)")
    ground.sql(ROWS, 1000)
    start = Barrier(6)

    def claim_all(number: int) -> list[tuple[Any, int]]:
        with Ground(database, f"worker-{number}") as worker:
            mine: list[tuple[Any, int]] = []
            start.wait(timeout=20)
            for _ in range(200):
                found = worker.claim(Action.DISPATCH, 50, doubts=50)
                mine.extend((message.slot, message.lease_token) for message in found)
                if not found:
                    return mine
            raise AssertionError("there is no end to what is due")

    with ThreadPoolExecutor(6) as pool:
        shares = list(pool.map(claim_all, range(6)))
    claims = [claim for share in shares for claim in share]
    assert len(claims) == len({slot for slot, _ in claims}) == 2000
    assert len({token for _, token in claims}) == len(claims)
    assert sum(bool(share) for share in shares) > 1
    ground.sql("delete from coatcheck.outbox")


def test_a_claim_takes_only_what_is_due_and_nobody_else_has(database: postgres.Database, ground: Ground) -> None:
    due, later, parked = ground.enqueue_many(3)
    ground.sql("update coatcheck.outbox set visible_at = now() + interval '1 h' where operation_id = %s", later)
    ground.sql(
        "update coatcheck.outbox set parked_at = now(), park_reason = 'lease_count' where operation_id = %s", parked
    )
    (message,) = ground.claim(Action.DISPATCH, lease_s=60)
    assert (message.operation_id, message.lane, message.lease_count, message.lease_s) == (due, 0, 1, 60)
    assert ground.claim(Action.DISPATCH) == []
    assert ground.claim(Action.OBSERVE) == []
    database.move_time(61)
    (again,) = ground.claim(Action.DISPATCH)
    assert (again.operation_id, again.lease_count) == (due, 2)
    assert again.lease_token > message.lease_token
    assert again.leased_at > message.leased_at


@pytest.mark.parametrize(
    ("column", "value"),
    [("provider", "'other'"), ("account", "'other'"), ("schema_version", "2"), ("action", "'observe'")],
)
def test_a_claim_takes_only_what_this_worker_can_handle(ground: Ground, column: str, value: str) -> None:
    operation_id = ground.enqueue("k")
    ground.connection.execute(f"update coatcheck.outbox set {column} = {value}".encode())
    assert ground.claim(Action.DISPATCH) == []
    if column == "account":
        (message,) = ground.claim(Action.DISPATCH, account="other")
        assert (message.operation_id, message.account) == (operation_id, "other")


def test_a_lane_without_an_account_goes_to_anyone_and_one_with_it_to_its_own(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.NotSent(dispatch_id=dispatch_id, cause="refused"))
    assert ground.claim(Action.DISPATCH, account="other") == []
    assert [message.account for message in ground.claim(Action.DISPATCH, account=ACCOUNT)] == [ACCOUNT]


def test_the_end_of_a_dispatch_is_found_by_any_worker(database: postgres.Database, ground: Ground) -> None:
    """Of every provider, account and version: doubt needs no adapter."""
    first, second = ground.enqueue_many(2)
    for operation_id in (first, second):
        ground.mark(operation_id)
    ground.sql(
        "update coatcheck.outbox set provider = 'strange', account = 'strange', schema_version = 9 where operation_id = %s",
        first,
    )
    assert ground.claim(Action.DISPATCH, doubts=10) == []
    database.move_time(91)
    with Ground(database, "worker-2") as other:
        assert other.claim(Action.OBSERVE, doubts=0) == []
        claimed = other.claim(Action.OBSERVE, doubts=1) + other.claim(Action.OBSERVE, doubts=10)
        assert {(message.operation_id, message.action) for message in claimed} == {
            (first, Action.RECONCILE),
            (second, Action.RECONCILE),
        }
        assert other.claim(Action.OBSERVE, doubts=10) == []


def test_what_is_locked_is_passed_over_and_a_history_row_in_the_making_is_no_lock(
    database: postgres.Database, ground: Ground
) -> None:
    first, second = ground.enqueue_many(2)
    with database.connect() as other, other.transaction():
        other.execute("select from coatcheck.outbox where operation_id = %s for no key update", [first])
        assert [message.operation_id for message in ground.claim(Action.DISPATCH)] == [second]
        other.execute("select from coatcheck.outbox where operation_id = %s for key share", [second])
    assert [message.operation_id for message in ground.claim(Action.DISPATCH)] == [first]


def test_room_is_kept_per_action_in_one_claim(ground: Ground) -> None:
    for operation_id in ground.enqueue_many(6)[:3]:
        ground.accept(operation_id)
    parameters = {**wanted(2), "room": [1, 2]}
    rows = ground.run(ground.line.fetch(statement("queue", "claim"), parameters))
    assert sorted(row["action"] for row in rows if row["action"]) == ["dispatch", "observe", "observe"]
