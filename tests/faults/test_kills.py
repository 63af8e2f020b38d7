"""A process killed at any named point of any action: what survives, and how a healthy one ends it."""

import pytest

from coatcheck.seams import Point
from faults.arena import PROVIDERS, Arena, Trial, ended_as
from faults.points import FATES, points
from faults.scenes import SCENES, SERVICE, killed
from faults.strike import Deed, Strike
from figures import Report

GROUPS = (1, 5)
AT_BYTES = {
    Point.D7_REQUEST_BYTES: (1, 100_000, 500_000),
    Point.D9_RESPONSE_BYTES: (1, 100),
    Point.O4_RESPONSE_BYTES: (1, 100),
    Point.V5_BODY_BYTES: (1, 1_500_000),
}
BLOWS = [(point, 0) for point in SCENES] + [(point, count) for point, counts in AT_BYTES.items() for count in counts]
CUSTOMERS = [point for point in points("E") if point is not Point.E2_OPERATION_INSERTED]
"""The statement that inserts the operation goes on with the outbox: what lies between is struck in `test_enqueue_kills`."""


def test_every_point_has_a_fate_and_is_struck() -> None:
    assert set(FATES) == set(Point)
    # the spool's points need a database that is away: `test_spool`
    assert SCENES.keys() | set(points("E")) | set(points("S")) == set(Point)


def customer_is_killed(arena: Arena, point: Point) -> Trial:
    """Its transaction is whole or not there, and asking again finds or makes the one operation."""
    provider = f"customer{point.value.lower()}"
    orders = arena.orders(1, provider=provider)
    key = orders[0]["key"]
    killed(arena.customer(orders, Strike(point=point)))
    left = arena.rows("select phase from coatcheck.operations where operation_key = %s", key)
    # a commit that nobody waits for may still be under way
    if point is not Point.E4_COMMIT_SENT:
        assert len(left) == (FATES[point].left is not None), point
    again = arena.customer(orders)
    assert again.ended() == 0, again.talk
    found = arena.one("select operation_id from coatcheck.operations where operation_key = %s", key)
    trial = Trial(provider=provider, operation_id=found["operation_id"], key=key, changes={PROVIDERS: provider})
    arena.trials.append(trial)
    arena.struck.add(trial.operation_id)
    return trial


@pytest.mark.timeout(300)
def test_a_worker_is_killed_and_the_next_one_ends_what_it_left(arena: Arena, group: int, figures: Report) -> None:
    arena.sim.script(SERVICE)
    before = born(arena)
    trials = []
    for point, at_bytes in BLOWS[group:] + BLOWS[:group]:
        trial, doomed = SCENES[point](arena, point, Deed.KILL, at_bytes)
        killed(doomed)
        assert arena.state(trial) == FATES[point].left, (point, at_bytes)
        trials.append((trial, point))
    trials += [(customer_is_killed(arena, point), point) for point in CUSTOMERS]
    kills = born(arena) - before - len(CUSTOMERS)
    verdict = arena.come_to_rest()
    assert verdict.is_clean, verdict
    assert verdict.recovered == len(arena.struck) == len(trials)
    for trial, point in trials:
        ended_as(arena, trial, FATES[point], point)
        finals = arena.events(trial.operation_id).count("render_finished")
        assert finals == (FATES[point].ends[0] == "accepted"), point
    figures("kills", kills)
    figures("recovered", verdict.recovered)


def born(arena: Arena) -> int:
    assert arena.nursery is not None
    return arena.nursery.born_count
