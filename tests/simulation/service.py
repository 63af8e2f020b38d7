"""How the simulated service misbehaves in one run: a script for it from the seed, and what jobs are ordered."""

import random
from collections.abc import Mapping
from typing import Any, Final

from coatcheck.sim import Role, Rule, SimulatedService
from coatcheck.sim.director import Situation
from coatcheck.sim.faults import Fault
from simulation.journal import Journal
from simulation.troubles import Mix, Trouble

_NO_REPLY: Final = (
    {"kind": "accept_then_drop"},
    {"kind": "accept_then_drop", "end": "rst"},
    {"kind": "drop_before_accept"},
    {"kind": "cut", "at": 40},
    {"kind": "cut", "at": -5},
    {"kind": "cut", "at": 30, "created": False, "end": "rst"},
    {"kind": "stall", "seconds": 2},
    {"kind": "stall", "seconds": 60},
    {"kind": "stall", "seconds": None, "created": False},
    {"kind": "slow", "chunk_bytes": 20, "interval_s": 0.2},
)
_ODD_REPLIES: Final = (
    {"kind": "informational"},
    {"kind": "chunked", "broken": True},
    {"kind": "gzip"},
    {"kind": "wrong_length"},
    {"kind": "garbage_status_line"},
    {"kind": "status", "status": 500},
    {"kind": "status", "status": 502, "created": True},
    {"kind": "status", "status": 503, "retry_after": "1"},
    {"kind": "throttled", "retry_after": "1"},
    {"kind": "throttled", "retry_after": None},
    {"kind": "redirect", "status": 302},
    {"kind": "malformed", "form": "html"},
    {"kind": "malformed", "form": "no_id"},
    {"kind": "malformed", "form": "id_control"},
)
_CREATES: Final = (
    *_NO_REPLY,
    *_ODD_REPLIES,
    {"kind": "error_with_job_id", "status": 502, "outcome": "failed"},
    {"kind": "error_with_job_id", "status": 503, "outcome": "succeeded"},
    {"kind": "status", "status": 422},
    {"kind": "status", "status": 409, "created": True},
    {"kind": "status", "status": 401},
    {"kind": "status", "status": 403},
)
_LOOKS: Final = (
    {"kind": "drop"},
    {"kind": "drop", "end": "rst"},
    {"kind": "cut", "at": 60},
    {"kind": "stall", "seconds": 30},
    {"kind": "status", "status": 500},
    {"kind": "status", "status": 404},
    {"kind": "status", "status": 403},
    {"kind": "throttled", "retry_after": "2"},
    {"kind": "malformed", "form": "html"},
    {"kind": "closed_window", "status": 204},
    {"kind": "wrong_id"},
    {"kind": "regression", "word": "queued"},
    {"kind": "unknown_word"},
    {"kind": "no_outputs", "form": "empty"},
    {"kind": "declare_wrong", "form": "sha256"},
)
_OUTPUTS: Final = (
    {"kind": "drop"},
    {"kind": "cut", "at": 900},
    {"kind": "stall", "seconds": 20},
    {"kind": "status", "status": 500},
    {"kind": "throttled", "retry_after": "1"},
    {"kind": "expired", "status": 403},
    {"kind": "expired", "status": 410},
    {"kind": "replaced", "form": "html"},
    {"kind": "wrong_length"},
    {"kind": "gzip"},
)
_LISTS: Final = (
    {"kind": "drop"},
    {"kind": "status", "status": 500},
    {"kind": "malformed", "form": "html"},
    {"kind": "wrong_reference"},
    {"kind": "unfiltered"},
    {"kind": "stall", "seconds": 20},
)
_ROLES: Final[Mapping[Trouble, tuple[str, tuple[dict[str, Any], ...]]]] = {
    Trouble.CREATE: ("create", _CREATES),
    Trouble.LOOK: ("look", _LOOKS),
    Trouble.OUTPUT: ("output", _OUTPUTS),
    Trouble.LIST: ("list", _LISTS),
}
_TOLD: Final = {
    Role.CREATE: Trouble.CREATE,
    Role.LOOK: Trouble.LOOK,
    Role.OUTPUT: Trouble.OUTPUT,
    Role.LIST: Trouble.LIST,
    Role.JOB: Trouble.COURSE,
}
_OUTCOMES: Final = ("failed", "moderated", "cancelled", "expired")
_EARLY: Final = (
    {"kind": "drop_before_body"},
    {"kind": "stall_before_body", "seconds": 0.4},
    {"kind": "early_reply", "status": 413},
)

_LAGGING: Final = {"kind": "stall_before_body", "seconds": 5.3}
"""The POST's time is over, and within SERVICE_LAG_S after it a job comes of it all the same."""
_ENDS_EARLY: Final = (
    Trouble.SLOW_NETWORK,
    Trouble.STALL_REQUEST,
    Trouble.CUT_REQUEST,
    Trouble.RAISE_AT_POINT,
    Trouble.HALT_AT_POINT,
)


def overheard(service: SimulatedService, journal: Journal) -> None:
    """Let the journal know of every fault that the service chose."""
    director = service._world.director
    choose, early = director.choose, director.early

    def choosing(situation: Situation, own: tuple[Rule, ...] = ()) -> Fault | None:
        fault = choose(situation, own)
        if fault is not None:
            journal.strike(_TOLD[situation.role], f"{fault.kind} {fault.status or ''}")
        return fault

    def choosing_early() -> Fault | None:
        fault = early()
        if fault is not None:
            journal.strike(Trouble.CREATE, fault.kind)
        return fault

    vars(director).update(choose=choosing, early=choosing_early)


def script_of(mix: Mix, chance: random.Random, *, echoes: bool) -> dict[str, Any]:
    """The service of one run: a handful of the faults of each role that is on."""
    odds = [
        {"on": role, "p": rate / 4, **chance.choice(faults)}
        for trouble, (role, faults) in _ROLES.items()
        if (rate := mix.rate(trouble))
        for _ in range(4)
    ]
    # after a POST that ended early it would be later than SERVICE_LAG_S says that a service ever is
    kinds = _EARLY if any(map(mix.rate, _ENDS_EARLY)) else (*_EARLY, _LAGGING, _LAGGING)
    early = [
        {"on": "create", "nth": chance.randint(1, 12), **chance.choice(kinds)}
        for _ in range(chance.randint(0, 3) if mix.rate(Trouble.CREATE) else 0)
    ]
    service = {
        "style": "echo" if echoes else "genace",
        "queued_s": [0.1, 2],
        "processing_s": [0.1, 6],
        "url_life_s": chance.choice([None, None, 8]),
        "outputs_as": chance.choice(["objects", "objects", "urls"]),
        **({"cancel_path": "/api/v1/jobs/{id}/cancel"} if chance.random() < 0.5 else {}),
    }
    return {"rules": early, "mix": odds, "service": service}


def course_of(mix: Mix, chance: random.Random, journal: Journal) -> dict[str, Any]:
    """How one job goes."""
    course: dict[str, Any] = {"outputs": chance.choice((1, 1, 1, 2, 3))}
    if chance.random() < mix.rate(Trouble.COURSE):
        course["outcome"] = chance.choice(_OUTCOMES)
        journal.strike(Trouble.COURSE, course["outcome"])
    return course
