"""Money and doubt as `stats` tells them: what is held by whatever is unfinished, and of it what a person has to decide."""

from decimal import Decimal

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import RenderState
from coatcheck.store.stats import Stats, read_stats
from store.ground import Ground, look


def stats(ground: Ground) -> Stats:
    return ground.run(read_stats(ground.line))


def test_nothing_is_held_where_nothing_was_sent(database: postgres.Database) -> None:
    with Ground(database) as ground:
        ground.enqueue("k1", estimate="3")
        found = stats(ground)
    assert (found.held, found.uncertain_held, found.uncertain_age_s, found.orphan_count) == ({}, {}, 0, 0)


def test_what_is_held_is_told_by_unit_and_exactly_and_doubt_apart(database: postgres.Database) -> None:
    with Ground(database) as ground:
        ground.accept(ground.enqueue("k1", estimate="90000000000000000.1"))
        ground.accept(ground.enqueue("k2", estimate="0.2"))
        ground.accept(ground.enqueue("k3", estimate="7", unit="coins"))
        doubtful = ground.enqueue("k4", estimate="0.000000000001")
        ground.happen(doubtful, ev.Doubted(dispatch_id=ground.mark(doubtful), cause="timeout"))
        database.move_time(50)
        found = stats(ground)
        assert found.held == {"credits": Decimal("90000000000000000.300000000001"), "coins": Decimal(7)}
        assert found.uncertain_held == {"credits": Decimal("0.000000000001")}
        assert 50 <= found.uncertain_age_s < 100
        assert found.uncertain_count == 1


def test_what_is_settled_is_not_held(database: postgres.Database) -> None:
    with Ground(database) as ground:
        operation_id = ground.enqueue("k1", estimate="2")
        job = ground.accept(operation_id)
        ground.happen(operation_id, look(job, RenderState.SUCCEEDED, outputs=1, charged=2))
        assert stats(ground).held == {}


def test_orphans_are_counted_until_somebody_deals_with_them(database: postgres.Database) -> None:
    with Ground(database) as ground:
        operation_id = ground.enqueue("k1")
        ground.sql(
            "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at)"
            " select 'a', 'j' || n, %s, 'orphan', now() from generate_series(1, 2) as n",
            operation_id,
        )
        assert stats(ground).orphan_count == 2
        ground.sql(
            "update coatcheck.remote_jobs set resolved_at = now(), resolved_by = 'ada', resolution = 'refunded' where remote_job_id = 'j1'"
        )
        assert stats(ground).orphan_count == 1
