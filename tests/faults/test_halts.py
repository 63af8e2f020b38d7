"""A worker that stands still beyond its lease while others do its work, and then goes on; and one that is told to end: at every point.

Whoever slept may not spend and may not overwrite; whoever is told to end keeps nothing and leaves no doubt. Several sleep at once: the
send window has to pass by the clock that cannot be moved, and is waited for once.
"""

from collections.abc import Sequence

import pytest

from coatcheck.seams import Point
from faults.arena import Arena, Trial, ended_as, kinds_of
from faults.child import Child
from faults.points import ACCEPTED, FATES, Fate, points
from faults.scenes import SCENES, SERVICE
from faults.stage import LEASES_OVER_S
from faults.strike import Deed
from figures import Report
from waiting import until

GROUPS = (1, 3)
AT_ONCE = 9
"""Sleepers beside each other: each keeps seven connections."""
SEND_S = "0.5"
PASSED = "select from coatcheck.dispatches where outcome = 'open' and send_by_at > coatcheck.lease_now()"
LEASED = "select from coatcheck.outbox where leased_by is not null and operation_id = %s"
ENDED, BEFORE_IT_LISTENS = 0, -15
UNDECIDED = {*points("R"), *points("L")[:2]}
"""Points of those who conclude a doubt."""


def turned(group: int, deed: Deed, *, in_lab: bool) -> list[Point]:
    """The points in another order in each group: they have other neighbours. With every change half of them sleep, and the others end."""
    every = list(SCENES)
    if not in_lab:
        return every[deed is Deed.TERMINATE :: 2]
    return every[group * 7 :] + every[: group * 7]


def fate_of_sleepers(point: Point) -> Fate:
    """What is not sent yet is sent by somebody else, and what is heard late counts: only doubt that died with its worker stays."""
    is_delivered = point.value[0] in "XDOVMB" or point in (*points("L")[2:], *points("C")[:2])
    return ACCEPTED if is_delivered else FATES[point]


def sleep_and_wake(arena: Arena, batch: Sequence[Point]) -> list[tuple[Point, Trial]]:
    """Everybody stands still at one of the points, others do all the work, and then all go on."""
    sleepers: list[tuple[Point, Trial, Child]] = []
    for point in batch:
        trial, sleeper = SCENES[point](arena, point, Deed.STOP, SEND_S=SEND_S)
        sleeper.stopped()
        sleepers.append((point, trial, sleeper))
    until(lambda: not arena.rows(PASSED))
    arena.database.move_time(LEASES_OVER_S)
    for kinds in kinds_of(trial for _, trial, _ in sleepers):
        arena.work(**kinds)
    for _, _, sleeper in sleepers:
        sleeper.go_on()
    for point, _, sleeper in sleepers:
        assert sleeper.ended() == ENDED, (point, sleeper.talk)
    return [(point, trial) for point, trial, _ in sleepers]


def test_with_every_change_each_point_is_either_slept_at_or_ended_at() -> None:
    halves = [set(turned(0, deed, in_lab=False)) for deed in (Deed.STOP, Deed.TERMINATE)]
    assert halves[0] | halves[1] == set(SCENES) == set(turned(1, Deed.STOP, in_lab=True))


@pytest.mark.timeout(300)
def test_a_worker_that_slept_beyond_its_lease_spends_nothing_and_overwrites_nothing(
    arena: Arena, group: int, in_lab: bool, figures: Report
) -> None:
    arena.sim.script(SERVICE)
    stops: list[tuple[Point, Trial]] = []
    while left := turned(group, Deed.STOP, in_lab=in_lab)[len(stops) :]:
        stops += sleep_and_wake(arena, left[:AT_ONCE])
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.recovered == len(stops)
    for point, trial in stops:
        fate = fate_of_sleepers(point)
        phase, _, delivery = arena.state(trial)
        assert (phase, delivery) == fate.ends, point
        assert arena.posts(trial.operation_id) in fate.posts, point
    figures("stops", len(stops))
    figures("recovered", verdict.recovered)


@pytest.mark.timeout(300)
def test_a_worker_that_is_told_to_end_at_any_point_keeps_nothing_and_leaves_no_doubt(
    arena: Arena, group: int, in_lab: bool, figures: Report
) -> None:
    arena.sim.script(SERVICE)
    told: list[tuple[Point, Trial]] = []
    # a command does not drain: told to end it dies, and `test_kills` says what that leaves
    for point in [each for each in turned(group, Deed.TERMINATE, in_lab=in_lab) if each not in points("C")]:
        trial, worker = SCENES[point](arena, point, Deed.TERMINATE)
        may = {ENDED, BEFORE_IT_LISTENS} if point in points("B")[:4] else {ENDED}
        assert worker.ended() in may, (point, worker.talk)
        if worker.ended() == ENDED:
            assert Point.D4_MARK_COMMIT_SENT not in worker.points_while_draining(), point
        assert arena.rows(LEASED, trial.operation_id) == [], point
        in_doubt = {"uncertain", "dispatching"} if point in UNDECIDED else set()
        assert arena.state(trial)[0] in {"prepared", "accepted"} | in_doubt, point
        told.append((point, trial))
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.recovered == len(told)
    for point, trial in told:
        ended_as(arena, trial, fate_of_sleepers(point), point)
    figures("terminations", len(told))
    figures("recovered", verdict.recovered)
