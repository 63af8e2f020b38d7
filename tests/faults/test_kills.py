"""A process killed at any named point of any action: what survives, and how a healthy one ends it."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from coatcheck.seams import Point
from faults.arena import PROVIDERS, Arena, Trial, ended_as, killing
from faults.child import KILLED, Child
from faults.points import FATES, points
from faults.stage import LEASES_OVER_S, QUICK
from faults.strike import Strike
from figures import Report

GROUPS = (1, 5)
TRICKLE = {"kind": "slow", "chunk_bytes": 10, "interval_s": 0.002}
LARGE = {"outputs": [{"type": "image/png", "bytes": 3_000_000}]}
CANCEL_PATH = "/api/v1/jobs/{id}/cancel"
JOBS: Mapping[Point, Mapping[str, Any]] = {
    # large enough that the kernel does not take it in one piece
    Point.D7_REQUEST_BYTES: {**QUICK, "error_message": "x" * 900_000},
    Point.D9_RESPONSE_BYTES: {**QUICK, "create": TRICKLE},
    Point.O4_RESPONSE_BYTES: {**QUICK, "look": TRICKLE},
    Point.V5_BODY_BYTES: {**QUICK, **LARGE},
}
AT_BYTES = {
    Point.D7_REQUEST_BYTES: (1, 100_000, 500_000),
    Point.D9_RESPONSE_BYTES: (1, 100),
    Point.O4_RESPONSE_BYTES: (1, 100),
    Point.V5_BODY_BYTES: (1, 1_500_000),
}
Scene = Callable[[Arena, Point, int], tuple[Trial, Child]]


def fresh(arena: Arena, point: Point, at_bytes: int) -> tuple[Trial, Child]:
    """From the outbox on."""
    trial = arena.trial(JOBS.get(point, QUICK))
    return trial, arena.strike(trial, killing(point, trial, at_bytes=at_bytes))


def in_doubt(arena: Arena, point: Point, _: int, **changes: str) -> tuple[Trial, Child]:
    """After a dispatch whose worker died while its reply was coming in, and whose lease is over."""
    trial = arena.trial(QUICK, **changes)
    killed(arena.strike(trial, killing(Point.D9_RESPONSE_BYTES, trial)))
    arena.database.move_time(LEASES_OVER_S)
    return trial, arena.strike(trial, killing(point, trial))


def looked_up(arena: Arena, point: Point, at_bytes: int) -> tuple[Trial, Child]:
    """The same at a service that repeats our reference."""
    return in_doubt(arena, point, at_bytes, KIND="echo")


def unwanted(arena: Arena, point: Point, _: int) -> tuple[Trial, Child]:
    """While a job is under way that nobody wants any more."""
    trial = arena.trial({"queued_s": 0, "processing_s": 600}, CANCEL_PATH=CANCEL_PATH)
    killed(arena.strike(trial, killing(Point.O1_RECEIVED, trial)))
    arena.wish(trial)
    arena.database.move_time(LEASES_OVER_S)
    return trial, arena.strike(trial, killing(point, trial))


def refused_look(arena: Arena, point: Point, _: int) -> tuple[Trial, Child]:
    """While the first look fails."""
    trial = arena.trial({**QUICK, "look": {"kind": "status", "status": 503, "nth": 1}})
    return trial, arena.strike(trial, killing(point, trial))


def commanded(arena: Arena, point: Point, _: int) -> tuple[Trial, Child]:
    """While a person cancels."""
    trial = arena.trial()
    return trial, arena.commands(trial, Strike(point=point))


SCENES: Mapping[Point, Scene] = {
    **{point: fresh for letter in "XDOVM" for point in points(letter)},
    **dict.fromkeys(points("B")[:4], fresh),
    **dict.fromkeys([*points("R"), Point.L1_RENEWAL_SENT, Point.L2_RENEWED], in_doubt),
    Point.R2_EVIDENCE_READ: looked_up,
    **dict.fromkeys(points("K"), unwanted),
    **dict.fromkeys([*points("B")[4:], Point.L3_END_SENT, Point.L4_ENDED], refused_look),
    **dict.fromkeys(points("C"), commanded),
}
BLOWS = [(point, 0) for point in SCENES] + [(point, count) for point, counts in AT_BYTES.items() for count in counts]
CUSTOMERS = [point for point in points("E") if point is not Point.E2_OPERATION_INSERTED]
"""The statement that inserts the operation goes on with the outbox: what lies between is struck in `test_enqueue_kills`."""


def killed(doomed: Child) -> None:
    assert doomed.ended() == KILLED, doomed.talk


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
    arena.sim.script({"service": {"style": "echo", "cancel_path": CANCEL_PATH}})
    before = born(arena)
    trials = []
    for point, at_bytes in BLOWS[group:] + BLOWS[:group]:
        trial, doomed = SCENES[point](arena, point, at_bytes)
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
