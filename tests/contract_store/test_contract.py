"""Whatever happens, the store in memory and PostgreSQL answer alike and hold the same rows, step by step."""

import asyncio
from collections import Counter

import pytest

from contract_store.course import Course
from contract_store.differences import Diverged
from contract_store.twin import Twin
from figures import Report, Scale
from memory.statements import EFFECTS

STEPS = 40
GIVEN = {
    "store/mark": ("applied", "stale", "paused", "allowance", "cap", "rate"),
    "store/conclude": ("applied", "evidence", "owned"),
    "store/snapshot": ("applied", "stale"),
    "store/deliver": ("applied", "stale"),
    "store/decide": ("applied", "stale", "owned"),
    "store/resolve_orphan": ("applied",),
}
"""The answers that the courses of one run must have brought out of both stores."""


@pytest.mark.timeout(3600)
def test_any_course_of_events_leaves_both_stores_the_same(
    twin: Twin, runner: asyncio.Runner, lab_scale: Scale, figures: Report
) -> None:
    for seed in range(lab_scale(ci=40, lab=600)):
        course = Course(twin, seed)
        try:
            runner.run(course.go(STEPS))
        except Diverged as error:
            pytest.fail(f"seed {seed}, step {len(course.told)}: {error}\n{course.last()}")
    figures("contract steps", sum(twin.statements[name] for name in EFFECTS))
    assert _missing(twin.statements) == []


def _missing(statements: Counter[str]) -> list[str]:
    answers = [f"{name}: {answer}" for name, answers in GIVEN.items() for answer in answers]
    return [each for each in (*EFFECTS, *answers) if not statements[each]]
