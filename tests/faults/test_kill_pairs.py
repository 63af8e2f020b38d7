"""The first worker killed at one point of a dispatch, the one that recovers at another: every ordered pair. Recovery deserves as many kills.

A kill before the mark leaves a dispatch that is made anew; one after it leaves doubt, which a person decides to pay again; after the save
nothing is dispatched any more, and whoever recovers is killed at a look or a delivery.
"""

import itertools
from collections.abc import Sequence

import pytest

from coatcheck.seams import Point
from faults.arena import Arena, Trial, all_of, killing
from faults.child import KILLED
from faults.points import FATES, points
from faults.stage import LEASES_OVER_S
from figures import Report

GROUPS = (1, 6)
DISPATCH = points("D")
AFTER = [*points("O"), *points("V")]
IS_REPEATED = DISPATCH[: DISPATCH.index(Point.D5_MARK_DURABLE)]
IS_SAVED = DISPATCH[DISPATCH.index(Point.D13_SAVED) :]
IN_DOUBT = [point for point in DISPATCH if point not in IS_REPEATED and point not in IS_SAVED]
PAIRS = [
    *itertools.product(IS_REPEATED, DISPATCH),
    *itertools.product(IN_DOUBT, DISPATCH),
    *itertools.product(IS_SAVED, AFTER),
]
NEVER_REACHED = list(itertools.product(IS_SAVED, DISPATCH))
"""Pairs of which the second point is the start of a second POST that nobody asked for."""

Pair = tuple[Point, Point]


def share(pairs: Sequence[Pair], group: int, *, in_lab: bool) -> list[Pair]:
    """This group's pairs. Every change tries a diagonal of them: each point of a dispatch comes first, and as many as can be second."""
    if in_lab:
        return list(pairs[group :: GROUPS[1]])
    seconds = {first: [second for each, second in pairs if each is first] for first, _ in pairs}
    return [(first, choices[(5 * at + 3) % len(choices)]) for at, (first, choices) in enumerate(seconds.items())]


def test_a_sample_of_the_pairs_has_each_point_first_and_no_second_one_twice() -> None:
    sample = share(PAIRS, 0, in_lab=False)
    assert {first for first, _ in sample} == set(DISPATCH)
    assert len({second for _, second in sample}) == len(sample)
    assert sorted(each for group in range(GROUPS[1]) for each in share(PAIRS, group, in_lab=True)) == sorted(PAIRS)
    assert set(itertools.product(DISPATCH, DISPATCH)) <= {*PAIRS, *NEVER_REACHED}


def strike_each(arena: Arena, blows: Sequence[tuple[Trial, Point]]) -> None:
    for trial, point in blows:
        doomed = arena.strike(trial, killing(point, trial))
        assert doomed.ended() == KILLED, (point, doomed.talk)
        assert arena.state(trial) == FATES[point].left, point


def is_paid_again(arena: Arena, trials: Sequence[Trial]) -> None:
    """Whatever is in doubt is decided: the former POST counts as spent, and one more is authorised."""
    arena.work(**all_of(trials))
    assert {arena.state(trial)[0] for trial in trials} <= {"uncertain"}
    arena.database.move_time(LEASES_OVER_S)
    arena.decides("redispatch", trials)


@pytest.mark.timeout(300)
def test_two_workers_are_killed_and_the_third_ends_what_they_left(
    arena: Arena, group: int, in_lab: bool, figures: Report
) -> None:
    pairs = {id(trial): (trial, pair) for pair in share(PAIRS, group, in_lab=in_lab) for trial in [arena.trial()]}
    strike_each(arena, [(trial, first) for trial, (first, _) in pairs.values()])
    arena.database.move_time(LEASES_OVER_S)
    is_paid_again(arena, [trial for trial, (first, _) in pairs.values() if first in IN_DOUBT])
    strike_each(arena, [(trial, second) for trial, (_, second) in pairs.values()])
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.recovered == len(pairs)
    for trial, (first, second) in pairs.values():
        phase, _, delivery = arena.state(trial)
        assert (phase, delivery) == FATES[second].ends, (first, second)
        dispatches = 1 + (first in IN_DOUBT)
        assert len(arena.dispatches(trial.operation_id)) == dispatches, (first, second)
        sent = {before + after for before, after in itertools.product(posts_at(first), FATES[second].posts)}
        assert arena.posts(trial.operation_id) in sent, (first, second)
    figures("kills", 2 * len(pairs))
    figures("kill pairs", len(pairs))
    figures("recovered", verdict.recovered)


def posts_at(first: Point) -> frozenset[int]:
    """How many POSTs the first dispatch may have made that a second one adds to."""
    return FATES[first].posts if first in IN_DOUBT else frozenset({0})


@pytest.mark.timeout(300)
def test_a_worker_that_recovers_what_was_saved_never_comes_near_a_second_post(
    arena: Arena, group: int, in_lab: bool, figures: Report
) -> None:
    pairs = [(arena.trial(), pair) for pair in share(NEVER_REACHED, group, in_lab=in_lab)]
    strike_each(arena, [(trial, first) for trial, (first, _) in pairs])
    arena.database.move_time(LEASES_OVER_S)
    for trial, (_, second) in pairs:
        recovers = arena.strike(trial, killing(second, trial))
        assert recovers.ended() == 0, (second, recovers.talk)
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert len(arena.sim.posts) == len(pairs) == verdict.recovered
    figures("kills", len(pairs))
    figures("kill pairs", len(pairs))
    figures("recovered", verdict.recovered)
