"""The comparison sees what it is there to see: of a store in memory that is wrong in one place, it finds that in a few courses."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contract_store.course import Course
from contract_store.differences import Diverged
from contract_store.test_contract import STEPS
from contract_store.twin import Twin
from figures import Report
from memory import accounts, budgets, claiming, concluding, deciding, evidence, leases, looking, marking
from memory.tables import listed

COURSES = 40


def nothing(*_given: Any, **_named: Any) -> None:
    """Stands for what is left out."""


def _without(module: Any, name: str, instead: Any = nothing) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(module, name, instead)


def _any_token(patch: pytest.MonkeyPatch) -> None:
    """Every lease counts as held, whoever has it now."""

    def mine(tables: Any, p: Any, *names: str) -> Any:
        items = listed(p, "operation_id", "lane", *names)
        keys = [(item["operation_id"], item["lane"]) for item in items]
        return [
            (key, tables.outbox.rows[key], item)
            for key, item in zip(keys, items, strict=True)
            if key in tables.outbox.rows
        ]

    patch.setattr(leases, "_mine", mine)


def _any_revision(patch: pytest.MonkeyPatch) -> None:
    """A decision applies whatever was read."""
    guarded = deciding._guarded
    patch.setattr(deciding, "_guarded", lambda tables, step: {**guarded(tables, step), "is_current": True})


def _final_replaced(patch: pytest.MonkeyPatch) -> None:
    """A look applies whatever was read before."""
    judged = looking._judged
    patch.setattr(looking, "_judged", lambda tables, step, worker: {**judged(tables, step, worker), "applies": True})


def _sum_not_running(patch: pytest.MonkeyPatch) -> None:
    """Each mark of a batch is tried against the allowance as if it were alone."""
    afford = marking._afford
    patch.setattr(marking, "_afford", lambda tables, steps: [afford(tables, [step]) for step in steps])


def _wanted(**other: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """A claim that does not hear all that it is asked."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        kinds_of = budgets.kinds_of
        patch.setattr(
            claiming,
            "kinds_of",
            lambda *given: [replace(kind, want={**kind.want, **other}) for kind in kinds_of(*given)],
        )

    return plant


def _one_too_many(patch: pytest.MonkeyPatch) -> None:
    """A rate allows one more than it says."""
    tokens = accounts.tokens

    def more(*given: Any) -> int | None:
        count = tokens(*given)
        return None if count is None else count + 1

    patch.setattr(marking, "tokens", more)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a limit is never asked": _without(marking, "_afford"),
    "an allowance is tried mark by mark": _sum_not_running,
    "a budget is never asked": _without(marking, "_budget"),
    "what is in flight is not counted": _without(concluding, "move_accounts"),
    "no pause follows from replies": _without(concluding, "pause_accounts"),
    "an outcome may fall": _without(evidence, "outcome_rank", lambda outcome: 1),
    "an id concludes whatever its dispatch": _without(concluding, "_concludes", lambda *_, **__: True),
    "an owned id raises no incident": _without(concluding, "note_disputes"),
    "a lost lease writes": _any_token,
    "a wait begins anew each time": _without(leases, "_waits", lambda *_: {}),
    "a stale decision applies": _any_revision,
    "a stale look applies": _final_replaced,
    "a decision settles nothing": _without(deciding, "settle", lambda *_: []),
    "a rate allows one too many": _one_too_many,
    "no place is kept for who has nothing in hand": _wanted(reserve=0),
    "a suspect is leased in company": _without(claiming, "_suspect"),
    "what is past its deadline waits for a budget": _without(claiming, "_expired", lambda *_: []),
    "looks are not counted": _without(claiming, "spend_looks"),
}


RARE = {
    "an allowance is tried mark by mark": 19,
    "no place is kept for who has nothing in hand": 9,
    "a suspect is leased in company": 17,
    "what is past its deadline waits for a budget": 10,
    "looks are not counted": 14,
}
"""From which seed on the rarer ones are looked for, to save the time that the courses before it take."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_divergence_is_found(
    planted: str, twin: Twin, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, figures: Report
) -> None:
    PLANTED[planted](monkeypatch)
    first = RARE.get(planted, 0)
    for seed in range(first, first + COURSES):
        try:
            runner.run(Course(twin, seed).go(STEPS))
        except Diverged:
            figures("contract divergences found", 1)
            return
    pytest.fail(f"{COURSES} courses saw nothing of it")
