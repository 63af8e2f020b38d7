"""What `stats` tells: money and doubt of whatever is unfinished, and what waits for its account and not for a worker."""

from decimal import Decimal

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import RenderState
from coatcheck.seams import NO_FAULTS
from coatcheck.store import pauses
from coatcheck.store.budgets import Budget, change_budget
from coatcheck.store.messages import messages
from coatcheck.store.pauses import Pausable
from coatcheck.store.stats import AccountStats, Stats, read_stats
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


# -- accounts ---------------------------------------------------------------------------------------------------------


def set_budget(ground: Ground, **limits: float | None) -> None:
    ground.run(change_budget(ground.database.url, "genace", Budget(**limits), faults=NO_FAULTS))  # type: ignore[arg-type] # counts are whole


def account(ground: Ground) -> AccountStats:
    (found,) = stats(ground).accounts
    return found


def account_waits(ground: Ground) -> list[str | None]:
    """As `messages list` tells them."""

    async def read() -> list[str | None]:
        found = messages(ground.line, action=None, provider=None, waiting=None)
        return [each.account_wait async for each in found]

    return ground.run(read())


def test_a_known_account_without_a_budget_is_told_as_free(database: postgres.Database) -> None:
    with Ground(database) as ground:
        set_budget(ground, max_in_flight=None)
        ground.enqueue("k1")
        found = account(ground)
        assert (found.account, found.providers, found.is_limited) == ("genace", ["genace"], False)
        assert (found.max_in_flight, found.in_flight_count, found.due_dispatch_count) == (None, None, 1)
        assert (found.dispatch_wait, found.look_wait, account_waits(ground)) == (None, None, [None])


def test_what_a_full_account_keeps_back_is_not_unclaimed(database: postgres.Database) -> None:
    """As many in flight as it may have, and one of them in doubt."""
    with Ground(database) as ground:
        set_budget(ground, max_in_flight=2)
        ground.accept(ground.enqueue("k1"))
        doubtful = ground.enqueue("k2")
        ground.happen(doubtful, ev.Doubted(dispatch_id=ground.mark(doubtful), cause="timeout"))
        ground.enqueue("k3")
        database.move_time(100)
        found, genace = stats(ground), account(ground)
        assert (found.account_waits, found.unclaimed_count) == ({"cap": 1}, 1), "the look is taken by nobody"
        assert found.due == {"dispatch": 1, "observe": 1}
        assert (genace.in_flight_count, genace.max_in_flight, genace.uncertain_count) == (2, 2, 1)
        assert (genace.dispatch_wait, genace.look_wait) == ("cap", None)
        assert sorted(account_waits(ground), key=str) == [None, None, "cap"]
        set_budget(ground, max_in_flight=3)
        assert (stats(ground).account_waits, stats(ground).unclaimed_count) == ({}, 2), "nobody marked for a minute"


def test_where_a_place_has_just_become_free_it_is_still_the_limit_that_is_waited_for(
    database: postgres.Database,
) -> None:
    with Ground(database) as ground:
        waiting = ground.enqueue("k1")
        database.move_time(100)
        set_budget(ground, max_in_flight=2)
        ground.accept(ground.enqueue("k2"))
        assert (stats(ground).account_waits, stats(ground).unclaimed_count) == ({"cap": 1}, 0)
        ground.accept(waiting)
        assert stats(ground).account_waits == {}


def test_a_rate_that_was_used_lately_is_what_its_backlog_waits_for(database: postgres.Database) -> None:
    with Ground(database) as ground:
        set_budget(ground, dispatches_per_s=0.5, looks_per_s=0.5)
        sent, _ = ground.enqueue("k1"), ground.enqueue("k2")
        ground.accept(sent)
        database.move_time(3)
        ground.accept(ground.enqueue("k3"))
        database.move_time(52)
        assert len(ground.claim(Action.OBSERVE)) == 1
        found, genace = stats(ground), account(ground)
        assert (found.account_waits, found.unclaimed_count) == ({"rate": 2}, 0)
        assert (genace.dispatch_wait, genace.look_wait, genace.due_look_count) == ("rate", "rate", 1)
        assert genace.look_age_s > 30
        database.move_time(62)
        assert stats(ground).account_waits == {}
        assert stats(ground).unclaimed_count == 2


@pytest.mark.parametrize("what", list(Pausable))
def test_a_pause_is_told_with_its_reason_and_what_it_keeps_back(what: Pausable, database: postgres.Database) -> None:
    with Ground(database) as ground:
        ground.accept(ground.enqueue("k1"))
        ground.enqueue("k2")
        set_budget(ground, max_in_flight=None)
        database.move_time(100)
        ground.run(
            pauses.pause(ground.line, "genace", what=what, reason="key withdrawn", actor="ada", faults=NO_FAULTS)
        )
        found, genace = stats(ground), account(ground)
    assert (found.account_waits, found.unclaimed_count, genace.is_limited) == ({"pause": 1}, 1, True)
    if what is Pausable.DISPATCH:
        assert (genace.dispatch_pause_reason, genace.dispatch_paused_by) == ("key withdrawn", "ada")
        assert (genace.dispatch_wait, genace.look_wait, genace.observation_paused_at) == ("pause", None, None)
    else:
        assert (genace.observation_pause_reason, genace.observation_paused_by) == ("key withdrawn", "ada")
        assert (genace.dispatch_wait, genace.look_wait, genace.dispatch_paused_at) == (None, "pause", None)


def test_what_a_service_shut_and_what_was_just_looked_at_is_told_apart(database: postgres.Database) -> None:
    with Ground(database) as ground:
        ground.accept(ground.enqueue("k1"))
        ground.enqueue("k2")
        database.move_time(50)
        ground.sql(
            "update coatcheck.accounts set dispatch_shut_until = coatcheck.lease_now() + interval '9 s', look_floor_s = 300"
        )
        ground.sql("update coatcheck.outbox set last_leased_at = coatcheck.lease_now() where action = 'observe'")
        assert stats(ground).account_waits == {"shut": 1, "floor": 1}
        assert sorted(account_waits(ground), key=str) == ["floor", "shut"]
        genace = account(ground)
        assert (genace.dispatch_shut_until is None, genace.look_floor_s, genace.look_wait) == (False, 300, None)


def test_a_search_for_a_doubt_has_no_floor(database: postgres.Database) -> None:
    with Ground(database) as ground:
        doubtful = ground.enqueue("k1")
        ground.happen(doubtful, ev.Doubted(dispatch_id=ground.mark(doubtful), cause="timeout", looked_up=True))
        set_budget(ground, look_floor_s=300)
        database.move_time(100)
        ground.sql("update coatcheck.outbox set last_leased_at = coatcheck.lease_now()")
        assert (stats(ground).due, stats(ground).account_waits, account_waits(ground)) == ({"reconcile": 1}, {}, [None])


def test_instants_are_told_in_utc_whatever_zone_the_database_has(database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute(f"alter database {database.name} set timezone = 'Asia/Tokyo'".encode())
    with Ground(database) as ground:
        ground.run(
            pauses.pause(
                ground.line, "genace", what=Pausable.OBSERVATION, reason="key withdrawn", actor="ada", faults=NO_FAULTS
            )
        )
        (row,) = ground.sql("select observation_paused_at at time zone 'utc' as since from coatcheck.accounts")
        since = account(ground).observation_paused_at
    assert since is not None
    assert since.replace(tzinfo=None) == row["since"]
