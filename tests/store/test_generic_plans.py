"""A claim's session plans for any parameters: the same plan whatever is asked for, none of them a walk through a table that was empty once."""

from typing import LiteralString

import psycopg
import pytest

from coatcheck.core.actions import Action
from coatcheck.queue.leases import Release
from coatcheck.store.db import Plan
from coatcheck.store.statements import statement
from store.ground import Ground

CLAIMS = 12
"""More than the five after which PostgreSQL would choose."""
MANY = 3_000
FILLED: LiteralString = """
insert into coatcheck.outbox (operation_id, lane, action, provider, account, tenant_id, precedence, expected_revision, schema_version, visible_at)
select coatcheck.new_id(), 0, 'observe', 'genace', 'genace', 'tenant ' || n, 0, 0, 1, now() + interval '1 day' from generate_series(1, %s) as n
"""
PLANNED: LiteralString = (
    "select generic_plans, custom_plans from pg_prepared_statements where statement like '%looks_spent%'"
)
TOLD = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"}


def claim(ground: Ground, room: int) -> None:
    """Claim and give back."""
    held = ground.claim(Action.DISPATCH, room)
    ground.run(ground.leases.release([Release(message=each, delay_s=0) for each in held]))


def settings(ground: Ground) -> dict[str, str]:
    """What the worker's own session says."""
    query = "select name, setting from pg_settings where name in ('plan_cache_mode', 'enable_seqscan', 'jit')"
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


def test_a_claim_that_was_planned_on_an_empty_outbox_reads_no_full_one_through(ground: Ground) -> None:
    ground.sql("alter table coatcheck.outbox set (autovacuum_enabled = false)")
    claim(ground, 1)
    ground.sql(FILLED, MANY)
    ground.enqueue_many(3)
    before = rows_read_in_sequence(ground)
    for _ in range(CLAIMS):
        claim(ground, 2)
    assert rows_read_in_sequence(ground) - before < MANY
    # the invariants that each story ends with know no message without its operation
    ground.sql("delete from coatcheck.outbox where tenant_id like 'tenant %'")


def rows_read_in_sequence(ground: Ground) -> int:
    """Rows of the outbox that anybody read by going through all of it."""
    ground.run(ground.line.fetch("select pg_stat_force_next_flush()"))
    (row,) = ground.sql("select seq_tup_read from pg_stat_user_tables where relname = 'outbox'")
    return int(row["seq_tup_read"])
