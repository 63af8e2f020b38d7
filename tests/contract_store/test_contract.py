"""Whatever happens, the store in memory and PostgreSQL answer alike and hold the same rows, step by step."""

import asyncio
from collections import Counter

import pytest

from coatcheck.core.actions import Action
from coatcheck.queue.leases import Leases, Wanted
from contract_store import asides
from contract_store.chances import ACCOUNTS
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


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_nothing_is_told_of_an_operation_that_is_gone(twin: Twin, runner: asyncio.Runner, gone: int) -> None:
    """Not even its text, which is still there."""

    async def course() -> None:
        await asides.register(twin, ACCOUNTS)
        request = {"v": 1, "tenant_id": "t1", "provider": "genace", "specification_text": "{}"}
        for number in range(3):
            twin.enqueue({**request, "operation_key": f"k{number}"})
        twin.move(1)
        lost = sorted(twin.memory.tables.operations.rows)[gone]
        twin.drop("operations", lost)
        wanted = Wanted(action=Action.DISPATCH, provider="genace", account=ACCOUNTS["genace"], room=3, lease_s=30)
        messages = await Leases(twin, "w").claim([wanted], doubts=0, doubt_lease_s=30)
        assert len(messages) == 3
        assert [message.operation_id for message in messages if message.subject is None] == [lost]

    twin.begin()
    runner.run(course())


def _missing(statements: Counter[str]) -> list[str]:
    answers = [f"{name}: {answer}" for name, answers in GIVEN.items() for answer in answers]
    return [each for each in (*EFFECTS, *answers) if not statements[each]]
