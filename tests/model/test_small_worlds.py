"""The table, composed with a store's guards, in every world of a small size: no order of events breaks a promise, and every guard is needed."""

import pytest

from model.explore import explore
from model.promises import ALL
from model.variants import ACCIDENTS, DECISIONS, SOUND, VARIANTS, Variant
from model.world import Budget

LIMIT = 400_000


@pytest.mark.parametrize(
    ("budget", "at_least"),
    [
        pytest.param(ACCIDENTS, 20_000, id="a crash, an ended lease and a lost answer"),
        pytest.param(DECISIONS, 30_000, id="an ended lease and a person's decision"),
    ],
)
def test_no_order_of_events_breaks_a_promise(budget: Budget, at_least: int) -> None:
    found = explore(SOUND, budget, limit=LIMIT)
    assert found.broken is None, str(found)
    assert found.closed, str(found)
    assert found.worlds >= at_least


@pytest.mark.parametrize(
    ("variant", "promise"),
    [pytest.param(each, falls, id=f"{each.name}: {falls}") for each in VARIANTS for falls in each.falls],
)
def test_without_it_a_promise_falls(variant: Variant, promise: str) -> None:
    found = explore(variant.habits, variant.budget, limit=LIMIT, promises=[promise])
    assert found.broken == promise, str(found)
    assert found.story


def test_every_promise_can_fall() -> None:
    assert {promise for variant in VARIANTS for promise in variant.falls} == set(ALL)
