"""A worker that stands still beyond its lease while others do its work, and then goes on; and one that is told to end: at every point.

Whoever slept may not spend and may not overwrite; whoever is told to end keeps nothing and leaves no doubt. Several sleep at once: the
send window has to pass by the clock that cannot be moved, and is waited for once.
"""

from collections.abc import Iterator

import pytest

from coatcheck.seams import Point
from faults.arena import Arena, Trial, all_of, killing
from faults.child import Child
from faults.points import points
from faults.stage import LEASES_OVER_S, QUICK
from faults.strike import Deed
from faults.test_kills import JOBS
from figures import Report
from waiting import until

GROUPS = (1, 3)
AT_ONCE = 9
"""Sleepers beside each other: each keeps six connections."""
SEND_S = "0.5"
PASSED = "select from coatcheck.dispatches where outcome = 'open' and send_by_at > coatcheck.lease_now()"
LEASED = "select from coatcheck.outbox where leased_by is not null and operation_id = %s"
REFUSED = {**QUICK, "look": {"kind": "status", "status": 503, "nth": 1}}
SLOW_REPLY = {**QUICK, "create": {"kind": "stall", "seconds": 0.1}}
GIVEN_BACK = [*points("L")[2:], *points("B")[4:]]
STOPS = [*points("X"), *points("D"), *points("O"), *points("V"), *points("M"), *GIVEN_BACK]


def job_at(point: Point) -> dict[str, object]:
    return dict(REFUSED if point in GIVEN_BACK else JOBS.get(point, QUICK))


def batches(group: int) -> Iterator[list[Point]]:
    turned = STOPS[group * 5 :] + STOPS[: group * 5]
    for at in range(0, len(turned), AT_ONCE):
        yield turned[at : at + AT_ONCE]


def asleep(arena: Arena, point: Point) -> tuple[Trial, Child]:
    """A trial whose worker stands still at the point."""
    trial = arena.trial(job_at(point), SEND_S=SEND_S)
    return trial, arena.strike(trial, killing(point, trial, deed=Deed.STOP))


@pytest.mark.timeout(300)
def test_a_worker_that_slept_beyond_its_lease_spends_nothing_and_overwrites_nothing(
    arena: Arena, group: int, figures: Report
) -> None:
    for batch in batches(group):
        sleepers = [asleep(arena, point) for point in batch]
        for _, sleeper in sleepers:
            sleeper.stopped()
        until(lambda: not arena.rows(PASSED))
        arena.database.move_time(LEASES_OVER_S)
        arena.work(SEND_S=SEND_S, **all_of([trial for trial, _ in sleepers]))
        for _, sleeper in sleepers:
            sleeper.go_on()
        for _, sleeper in sleepers:
            assert sleeper.ended() == 0, sleeper.talk
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.recovered == len(STOPS) == len(arena.sim.posts)
    assert {arena.state(trial)[2] for trial in arena.trials} == {"delivered"}
    figures("stops", len(STOPS))
    figures("recovered", verdict.recovered)


@pytest.mark.timeout(300)
def test_a_worker_that_is_told_to_end_at_any_point_keeps_nothing_and_leaves_no_doubt(
    arena: Arena, group: int, figures: Report
) -> None:
    for point in STOPS[group * 5 :] + STOPS[: group * 5]:
        trial = arena.trial(SLOW_REPLY if point in points("D") else job_at(point))
        worker = arena.strike(trial, killing(point, trial, deed=Deed.TERMINATE))
        assert worker.ended() == 0, (point, worker.talk)
        assert Point.D4_MARK_COMMIT_SENT not in worker.points_while_draining(), point
        assert arena.rows(LEASED, trial.operation_id) == [], point
        assert arena.state(trial)[0] in {"prepared", "accepted"}, point
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.recovered == len(STOPS) == len(arena.sim.posts)
    assert {arena.state(trial)[2] for trial in arena.trials} == {"delivered"}
    figures("terminations", len(STOPS))
    figures("recovered", verdict.recovered)
