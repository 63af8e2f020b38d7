"""How each named point is come to: an operation, whatever has to happen before, and the process on which the blow falls."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coatcheck.seams import Point
from faults.arena import Arena, Trial, killing
from faults.child import KILLED, Child
from faults.points import points
from faults.stage import LEASES_OVER_S, QUICK
from faults.strike import Deed, Strike

TRICKLE = {"kind": "slow", "chunk_bytes": 10, "interval_s": 0.002}
LARGE = {"outputs": [{"type": "image/png", "bytes": 3_000_000}]}
CANCEL_PATH = "/api/v1/jobs/{id}/cancel"
SERVICE = {"service": {"style": "echo", "cancel_path": CANCEL_PATH}}
"""The script of a service in which every scene can be played."""
JOBS: Mapping[Point, Mapping[str, Any]] = {
    # large enough that the kernel does not take it in one piece
    Point.D7_REQUEST_BYTES: {**QUICK, "error_message": "x" * 900_000},
    Point.D9_RESPONSE_BYTES: {**QUICK, "create": TRICKLE},
    Point.O4_RESPONSE_BYTES: {**QUICK, "look": TRICKLE},
    Point.V5_BODY_BYTES: {**QUICK, **LARGE},
}
Scene = Callable[..., tuple[Trial, Child]]
"""Takes the arena, the point, the deed, from how many bytes on, and settings of the trial's workers."""


def killed(doomed: Child) -> None:
    assert doomed.ended() == KILLED, doomed.talk


def fresh(arena: Arena, point: Point, deed: Deed, at_bytes: int = 0, **changes: str) -> tuple[Trial, Child]:
    """From the outbox on."""
    trial = arena.trial(JOBS.get(point, QUICK), **changes)
    return trial, arena.strike(trial, killing(point, trial, deed=deed, at_bytes=at_bytes))


def in_doubt(arena: Arena, point: Point, deed: Deed, _: int = 0, **changes: str) -> tuple[Trial, Child]:
    """After a dispatch whose worker died while its reply was coming in, and whose lease is over."""
    trial = arena.trial(QUICK, **changes)
    killed(arena.strike(trial, killing(Point.D9_RESPONSE_BYTES, trial), SEND_S="5"))
    arena.database.move_time(LEASES_OVER_S)
    return trial, arena.strike(trial, killing(point, trial, deed=deed))


def unwanted(arena: Arena, point: Point, deed: Deed, _: int = 0, **changes: str) -> tuple[Trial, Child]:
    """While a job is under way that nobody wants any more."""
    trial = arena.trial({"queued_s": 0, "processing_s": 600}, CANCEL_PATH=CANCEL_PATH, **changes)
    killed(arena.strike(trial, killing(Point.O1_RECEIVED, trial), SEND_S="5"))
    arena.wish(trial)
    arena.database.move_time(LEASES_OVER_S)
    return trial, arena.strike(trial, killing(point, trial, deed=deed))


def refused_look(arena: Arena, point: Point, deed: Deed, _: int = 0, **changes: str) -> tuple[Trial, Child]:
    """While the first look fails."""
    trial = arena.trial({**QUICK, "look": {"kind": "status", "status": 503, "nth": 1}}, **changes)
    return trial, arena.strike(trial, killing(point, trial, deed=deed))


def commanded(arena: Arena, point: Point, deed: Deed, _: int = 0, **changes: str) -> tuple[Trial, Child]:
    """While a person cancels."""
    trial = arena.trial(QUICK, **changes)
    return trial, arena.commands(trial, Strike(point=point, deed=deed))


SCENES: Mapping[Point, Scene] = {
    **{point: fresh for letter in "XDOVM" for point in points(letter)},
    **dict.fromkeys(points("B")[:4], fresh),
    **dict.fromkeys([*points("R"), Point.L1_RENEWAL_SENT, Point.L2_RENEWED], in_doubt),
    # at a service that repeats our reference
    Point.R2_EVIDENCE_READ: partial(in_doubt, KIND="echo"),
    **dict.fromkeys(points("K"), unwanted),
    **dict.fromkeys([*points("B")[4:], Point.L3_END_SENT, Point.L4_ENDED], refused_look),
    **dict.fromkeys(points("C"), commanded),
}
