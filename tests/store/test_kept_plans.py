"""A claim takes longer to plan than to run, so it keeps one plan: for any parameters, from an empty table to a full one, and for nobody else."""

import asyncio
from typing import LiteralString

import psycopg
import pytest

from coatcheck.core.actions import Action
from coatcheck.queue.leases import Release
from coatcheck.store.db import Database, Plan
from store.ground import Ground
from waiting import until_async

CLAIMS = 12
"""More than the five after which PostgreSQL would choose."""
MANY = 3_000
_FILLED: LiteralString = """
insert into coatcheck.outbox (operation_id, lane, action, provider, account, tenant_id, precedence, expected_revision, schema_version, visible_at)
select coatcheck.new_id(), 0, 'observe', 'genace', 'genace', 'tenant ' || n, 0, 0, 1, now() + interval '1 day' from generate_series(1, %s) as n
"""


def claim(ground: Ground, room: int) -> None:
    """Claim and give back."""
    held = ground.claim(Action.DISPATCH, room)
    ground.run(ground.leases.release([Release(message=each, delay_s=0) for each in held]))


def setting(ground: Ground, name: LiteralString) -> str:
    """What the worker's own session says."""
    (row,) = ground.run(ground.line.fetch(f"select current_setting('{name}') as value"))
    return str(row["value"])


def test_claims_are_planned_once_whatever_they_ask_for(ground: Ground) -> None:
    ground.enqueue_many(30)
    for room in range(1, CLAIMS + 1):
        claim(ground, room)
    kept = "select generic_plans, custom_plans from pg_prepared_statements where statement like '%looks_spent%'"
    assert ground.run(ground.line.fetch(kept, plan=Plan.FRESH)) == [{"generic_plans": CLAIMS, "custom_plans": 0}]


@pytest.mark.parametrize("name", ["plan_cache_mode", "enable_seqscan", "jit"])
def test_what_a_claim_sets_ends_with_it(ground: Ground, name: LiteralString) -> None:
    before = setting(ground, name)
    claim(ground, 1)
    assert setting(ground, name) == before


def test_a_claim_that_was_planned_on_an_empty_outbox_reads_no_full_one_through(ground: Ground) -> None:
    ground.sql("alter table coatcheck.outbox set (autovacuum_enabled = false)")
    claim(ground, 1)
    ground.sql(_FILLED, MANY)
    ground.enqueue_many(3)
    before = rows_read_in_sequence(ground)
    for _ in range(CLAIMS):
        claim(ground, 2)
    assert rows_read_in_sequence(ground) - before < MANY
    ground.sql("delete from coatcheck.outbox where tenant_id like 'tenant %'")


def rows_read_in_sequence(ground: Ground) -> int:
    """Rows of the outbox that anybody read by going through all of it."""
    ground.run(ground.line.fetch("select pg_stat_force_next_flush()"))
    (row,) = ground.sql("select seq_tup_read from pg_stat_user_tables where relname = 'outbox'")
    return int(row["seq_tup_read"])


def test_a_failure_beside_what_is_set_is_the_statements_own(ground: Ground) -> None:
    """Its SQLSTATE comes through, and the session is whole afterwards."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        ground.run(ground.line.fetch("select 1 / %(n)s::integer as n", {"n": 0}, plan=Plan.KEPT))
    assert ground.run(ground.line.fetch("select 1 / %(n)s::integer as n", {"n": 1}, plan=Plan.KEPT)) == [{"n": 1}]


def test_one_that_is_cut_off_half_way_leaves_no_session_behind(ground: Ground) -> None:
    """The statement that comes after it finds a connection of its own, and none of the rows that nobody waited for."""

    async def cut() -> None:
        line = Database(ground.database.url, seams=ground.seams, name="cut")
        asleep = asyncio.create_task(line.fetch("select pg_sleep(%(s)s)::text as n", {"s": 600.0}, plan=Plan.KEPT))
        await until_async(lambda: ground.sql("select pid from pg_stat_activity where wait_event = 'PgSleep'"))
        asleep.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asleep
        assert await line.fetch("select %(n)s::integer as n", {"n": 7}, plan=Plan.KEPT) == [{"n": 7}]
        await line.close()

    ground.run(cut())
    assert not ground.sql("select pid from pg_stat_activity where wait_event = 'PgSleep'")
