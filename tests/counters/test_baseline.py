"""What one operation costs PostgreSQL does not grow unseen: statements, rows and log, against the baseline of the repository."""

from dataclasses import replace

import pytest

from counters.baseline import LOG, ROWS, grown, read
from counters.course import OPERATIONS, Cost, counted
from figures import Report

SAME = Cost(operations=10, statements={"store/mark": 2}, rows=1_000, wal_bytes=100_000, final_wal_bytes=80_000)
WRITTEN = {
    "operations": 10,
    "statements": {"store/mark": 2},
    "rows": 1_000,
    "wal_bytes": 100_000,
    "final_wal_bytes": 80_000,
}


@pytest.mark.parametrize("manner", OPERATIONS)
def test_an_operation_costs_no_more_than_in_the_baseline(manner: str, figures: Report) -> None:
    """It costs more? Then either undo that, or say in the change why it is worth it, and `make bench-baseline`."""
    cost = counted(manner)
    figures(f"log of {cost.operations} operations {manner}, bytes", cost.wal_bytes)
    figures(f"log of {cost.operations} operations {manner} without their deliveries, bytes", cost.final_wal_bytes)
    figures(f"statements of {cost.operations} operations {manner}", sum(cost.statements.values()))
    assert grown(read()[manner], cost) == []


@pytest.mark.parametrize(
    ("cost", "counter"),
    [
        (replace(SAME, statements={"store/mark": 3}), "store/mark"),
        (replace(SAME, statements={"store/mark": 2, "store/novel": 1}), "store/novel"),
        (replace(SAME, rows=int(1_000 * (1 + ROWS)) + 1), "rows"),
        (replace(SAME, wal_bytes=int(100_000 * (1 + LOG)) + 1), "wal_bytes"),
        (replace(SAME, final_wal_bytes=int(80_000 * (1 + LOG)) + 1), "final_wal_bytes"),
        (replace(SAME, operations=9), "rows"),
    ],
    ids=[
        "a statement more",
        "a new statement",
        "a row more",
        "more log",
        "more log until the end",
        "the same for fewer operations",
    ],
)
def test_what_grew_is_named(cost: Cost, counter: str) -> None:
    assert any(line.startswith(f"{counter}:") for line in grown(WRITTEN, cost))


def test_what_is_within_its_tolerance_or_shrank_is_no_growth() -> None:
    assert grown(WRITTEN, replace(SAME, rows=1_005, wal_bytes=101_000)) == []
    assert grown(WRITTEN, Cost(operations=10, statements={}, rows=1, wal_bytes=1, final_wal_bytes=1)) == []
