"""A claim's session plans for any parameters, the same whatever is asked for; and what was planned for an empty table is planned anew."""

from dataclasses import replace
from math import inf
from typing import LiteralString

import psycopg
import pytest

from coatcheck.core.actions import Action
from coatcheck.queue.leases import Release
from coatcheck.seams import Clock, Seams
from coatcheck.store import db
from coatcheck.store.db import Plan
from coatcheck.store.statements import statement
from coatcheck.store.subjects import load_subjects
from store.ground import Ground

CLAIMS = 12
"""More than the five after which PostgreSQL would choose."""
MANY = 3_000
FILLED: LiteralString = """
insert into coatcheck.outbox (operation_id, lane, action, provider, account, tenant_id, precedence, expected_revision, schema_version, visible_at)
select coatcheck.new_id(), 0, 'dispatch', 'genace', 'genace', 'tenant', 0, 0, 1, now() from generate_series(1, %s) as n
"""
JOBS: LiteralString = """
insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at)
select 'crowd', 'job-' || n, coatcheck.new_id(), 'owner', now() from generate_series(1, %s) as n
"""
ROOM = 20
PLANNED: LiteralString = (
    "select generic_plans, custom_plans from pg_prepared_statements where statement like '%looks_spent%'"
)
TOLD = {"plan_cache_mode": "force_generic_plan", "jit": "off"}


def claim(ground: Ground, room: int) -> None:
    """Claim and give back."""
    held = ground.claim(Action.DISPATCH, room)
    ground.run(ground.leases.release([Release(message=each, delay_s=0) for each in held]))


def settings(ground: Ground) -> dict[str, str]:
    """What the worker's own session says."""
    query = "select name, setting from pg_settings where name in ('plan_cache_mode', 'jit')"
    return {row["name"]: row["setting"] for row in ground.run(ground.line.fetch(query))}


def test_claims_have_one_plan_whatever_they_ask_for(ground: Ground) -> None:
    ground.enqueue_many(30)
    for room in range(1, CLAIMS + 1):
        claim(ground, room)
    assert ground.run(ground.line.fetch(PLANNED, plan=Plan.FRESH)) == [{"generic_plans": CLAIMS, "custom_plans": 0}]


def test_a_session_is_told_once_and_its_successor_again(ground: Ground) -> None:
    ground.run(ground.line.fetch("select set_config('jit', 'on', false)"))
    claim(ground, 1)
    assert settings(ground) == TOLD
    with pytest.raises(psycopg.Error):
        ground.run(ground.line.fetch("select pg_terminate_backend(pg_backend_pid())"))
    assert settings(ground) != TOLD
    claim(ground, 1)
    assert settings(ground) == TOLD


def test_a_session_that_may_be_anothers_behind_a_pooler_is_told_nothing(ground: Ground) -> None:
    before = settings(ground)
    assert ground.run(ground.line.fetch(statement("store", "plan_for_any"), {"pid": 1})) == []
    assert settings(ground) == before != TOLD


@pytest.mark.parametrize("is_quick", [False, True])
def test_what_was_planned_for_an_empty_outbox_is_planned_anew_once_it_is_slow(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, *, is_quick: bool
) -> None:
    """Autovacuum leaves such plans wherever an outbox drained; what is quick keeps them, which is what shows that they are bad."""
    monkeypatch.setattr(db, "SLOW_S", inf if is_quick else 0.0)
    monkeypatch.setattr(db, "GENERIC_SLOW_S", inf)
    monkeypatch.setattr(db, "PLANS_LAST_S", 0.0)
    ground.sql("alter table coatcheck.outbox set (autovacuum_enabled = false)")
    ground.sql("vacuum coatcheck.outbox")
    claim(ground, 1)
    ground.sql(FILLED, MANY)
    claim(ground, ROOM)
    before = rows_read(ground)
    claim(ground, ROOM)
    assert (rows_read(ground) - before > MANY) is is_quick
    # the invariants that each story ends with know no message without its operation
    ground.sql("delete from coatcheck.outbox where tenant_id = 'tenant'")


@pytest.mark.parametrize(("plan", "is_doubted"), [(Plan.FRESH, False), (Plan.AUTO, True), (Plan.GENERIC, True)])
def test_what_keeps_no_plan_says_nothing_of_plans(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, *, plan: Plan, is_doubted: bool
) -> None:
    """A page of a list may well be slow, and its plan is made for it alone."""
    monkeypatch.setattr(db, "SLOW_S", 0.0)
    monkeypatch.setattr(db, "PLANS_LAST_S", 0.0)
    ground.run(ground.line.fetch("select 1", plan=Plan.FRESH))
    ground.run(ground.line.fetch("select 1", plan=plan))
    assert ground.line._plans_are_old is is_doubted


@pytest.mark.parametrize("is_young", [False, True])
def test_a_young_session_plans_anew_while_tables_grow(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, *, is_young: bool
) -> None:
    """What was planned for a table with a few rows reads it through for each save, quick as that is."""
    monkeypatch.setattr(db, "YOUNG", frozenset())
    ground.sql("vacuum (analyze) coatcheck.remote_jobs")
    operation_ids = ground.enqueue_many(CLAIMS)
    for operation_id in operation_ids[1:]:
        ground.accept(operation_id)
    ground.sql(JOBS, MANY)
    if is_young:
        monkeypatch.setattr(db, "YOUNG", frozenset({ground.line._statement_count + 1}))
        ground.run(ground.line.fetch("select 1"))
    before = rows_read(ground, "remote_jobs")
    ground.accept(operation_ids[0])
    assert (rows_read(ground, "remote_jobs") - before < MANY) is is_young
    ground.sql("delete from coatcheck.remote_jobs where account = 'crowd'")


def test_a_session_is_young_until_it_said_much(ground: Ground) -> None:
    line = db.Database(ground.database.url, seams=Seams.real(), name="planner")
    doubted = set()
    for number in range(1, max(db.YOUNG) * 2):
        ground.run(line.fetch("select 1"))
        if line._plans_are_old:
            doubted.add(number)
    ground.run(line.close())
    assert doubted == db.YOUNG


class ToldClock(Clock):
    """Boot time as the test says."""

    def __init__(self, *told: float) -> None:
        self.told = iter(told)

    def boottime(self) -> float:
        return next(self.told)


@pytest.mark.parametrize(
    ("plan", "quickest_s", "after_s", "took_s", "is_doubted"),
    [
        (Plan.AUTO, 0.001, 0.9, 0.2, False),
        (Plan.AUTO, 0.001, 1.1, 0.2, True),
        (Plan.AUTO, 0.001, 100, 0.05, False),
        (Plan.GENERIC, 0.001, 4.9, 0.05, False),
        (Plan.GENERIC, 0.001, 5.1, 0.05, True),
        (Plan.GENERIC, 0.001, 1.1, 0.2, True),
        (Plan.GENERIC, 0.04, 100, 0.05, False),
    ],
)
def test_plans_are_doubted_by_how_long_a_statement_took_and_how_old_they_are(
    ground: Ground, plan: Plan, quickest_s: float, after_s: float, took_s: float, *, is_doubted: bool
) -> None:
    """A plan for any parameters may read a small table through, which takes tens of milliseconds; a server far away takes as long for nothing."""
    clock = ToldClock(1_000, 1_000, 1_000 + quickest_s, 1_000 + after_s - took_s, 1_000 + after_s)
    line = db.Database(ground.database.url, seams=replace(Seams.real(), clock=clock), name="planner")
    try:
        for _ in range(2):
            assert not line._plans_are_old
            ground.run(line.fetch("select 1", plan=plan))
        assert line._plans_are_old is is_doubted
    finally:
        ground.run(line.close())


def test_what_a_time_limit_ended_is_doubted_too(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "PLANS_LAST_S", 0.0)
    ground.run(ground.line.fetch("select set_config('statement_timeout', '200ms', false)", plan=Plan.FRESH))
    with pytest.raises(psycopg.errors.QueryCanceled):
        ground.run(ground.line.fetch("select pg_sleep(60)"))
    assert ground.line._plans_are_old


def test_a_new_session_has_no_old_plans(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "SLOW_S", 0.0)
    ground.run(ground.line.fetch("select 1"))
    monkeypatch.setattr(db, "PLANS_LAST_S", 0.0)
    ground.run(ground.line.fetch("select 1"))
    assert ground.line._plans_are_old
    ground.run(ground.line.close())
    ground.run(ground.line._open())
    assert not ground.line._plans_are_old


def test_what_was_quick_in_another_session_says_nothing_of_this_one(ground: Ground) -> None:
    """After a failover the server may be further away."""
    clock = ToldClock(1_000, 1_000, 1_000.001, 2_000, 2_100, 2_100.05)
    line = db.Database(ground.database.url, seams=replace(Seams.real(), clock=clock), name="planner")
    for _ in range(2):
        ground.run(line.fetch("select 1", plan=Plan.GENERIC))
        ground.run(line.close())
    assert not line._plans_are_old


def test_a_session_that_was_told_nothing_is_doubted_as_any_other(ground: Ground) -> None:
    clock = ToldClock(1_000, 1_000, 1_000.001, 1_100, 1_100.05)
    line = db.Database(ground.database.url, seams=replace(Seams.real(), clock=clock), name="planner")
    try:
        ground.run(line._open())
        line._session = 1  # what a client hears behind a pooler is no backend's number
        for _ in range(2):
            ground.run(line.fetch("select 1", plan=Plan.GENERIC))
        assert not line._plans_are_old
    finally:
        ground.run(line.close())


@pytest.mark.parametrize("table", ["dispatches", "deliveries", "specifications"])
def test_a_message_that_is_not_about_it_reads_no_table_through(ground: Ground, table: str) -> None:
    """What is loaded for each lease was planned when the worker had begun nothing yet, and the plan stays while the tables fill."""
    ground.sql(f"vacuum (analyze) coatcheck.{table}")
    looks = [((ground.enqueue("first"), 0), Action.OBSERVE)]
    for _ in range(CLAIMS):
        ground.run(load_subjects(ground.line, looks))
    looks += [((operation_id, 0), Action.OBSERVE) for operation_id in ground.enqueue_many(ROOM)]
    for (operation_id, _), _ in looks:
        ground.succeed(operation_id)
    before = rows_read(ground, table)
    assert len(ground.run(load_subjects(ground.line, looks))) == len(looks)
    assert rows_read(ground, table) == before


@pytest.mark.parametrize("table", ["operations", "dispatches", "deliveries", "specifications"])
def test_a_claim_reads_no_table_through_for_what_it_leases(ground: Ground, table: str) -> None:
    """The same of the claim, which says what its messages are about; of operations all may be read, once for all messages,
    and once for how much there is to say of them."""
    ground.sql(f"vacuum (analyze) coatcheck.{table}")
    for _ in range(CLAIMS):
        ground.claim(Action.OBSERVE)
    for operation_id in ground.enqueue_many(ROOM):
        ground.accept(operation_id)
    before = rows_read(ground, table)
    assert len(ground.claim(Action.OBSERVE)) == ROOM
    assert rows_read(ground, table) - before <= (2 * ROOM if table == "operations" else 0)


def rows_read(ground: Ground, table: str = "outbox") -> int:
    """Rows of a table that anybody read so far, by whatever way."""
    ground.run(ground.line.fetch("select pg_stat_force_next_flush()"))
    (row,) = ground.sql(
        "select seq_tup_read + idx_tup_fetch as count from pg_stat_user_tables where relname = %s", table
    )
    return int(row["count"])
