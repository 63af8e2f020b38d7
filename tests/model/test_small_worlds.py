"""The table, composed with a store's guards, in every world of a small size: no order of events breaks a promise, and every guard is needed.

One operation, two workers or three, at most two marks, and within each of `BOUNDS` up to so many of these, in any order: deaths of a worker
anywhere, leases that end early, answers of the database that are lost, replies left in a spool, decisions of a person, failovers that lose a
mark, jobs of others that are named, a deadline, and messages parked for their leases. Every state within them is looked at: with each change
in the smaller ones, in the laboratory in the wide ones, too.
"""

import time

import pytest

from figures import Report, Scale
from model.explore import explore
from model.promises import ALL
from model.variants import SOUND, VARIANTS, Variant
from model.world import Bounds

LIMIT = 20_000_000
BOUNDS = {
    "three workers": Bounds(lease_ends=2, workers=3),
    "others between a claim and its read": Bounds(crashes=1, lease_ends=2, reads_apart=True),
    "a failover that loses a mark": Bounds(lease_ends=1, failovers=1),
    "a crash, and a reply in a spool": Bounds(crashes=1, lease_ends=1, spoolings=1),
    "a reply in a spool, and second thoughts": Bounds(lease_ends=1, spoolings=1, decisions=2, workers=1),
    "jobs of others": Bounds(lease_ends=1, strays=1),
    "a deadline, and messages parked for their leases": Bounds(
        crashes=1, lease_ends=2, lease_limit=1, has_deadline=True
    ),
}
IN_THE_LAB = {
    "two crashes, two ended leases, a lost answer, and a person's decision": Bounds(
        crashes=2, lease_ends=2, lost_answers=1, decisions=1
    ),
    "a spool and a failover": Bounds(crashes=1, lease_ends=1, spoolings=1, failovers=1),
    "lost answers and jobs of others": Bounds(crashes=1, lost_answers=1, decisions=1, strays=1),
    "three workers and a decision": Bounds(lease_ends=1, decisions=1, workers=3),
}
STATES, STATES_IN_THE_LAB = 100_000, 1_000_000
"""At least so many in the largest world: those of different bounds overlap, so a sum would say less."""


@pytest.mark.timeout(900)
def test_no_order_of_events_breaks_a_promise(figures: Report, lab_scale: Scale) -> None:
    counts, took_s = [], []
    further = lab_scale(ci=0, lab=len(IN_THE_LAB))
    for name, bounds in [*BOUNDS.items(), *list(IN_THE_LAB.items())[:further]]:
        began_s = time.process_time()
        found = explore(SOUND, bounds, limit=LIMIT)
        took_s.append(time.process_time() - began_s)
        assert found.broken is None, f"{name}: {found}"
        assert found.closed, f"{name}: {found}"
        counts.append(found.states)
    assert max(counts) >= lab_scale(ci=STATES, lab=STATES_IN_THE_LAB)
    figures("model states of the largest world", max(counts))
    figures("model CPU seconds of the largest world", round(took_s[counts.index(max(counts))]))
    figures("model states looked at, some of them in more than one world", sum(counts))


@pytest.mark.parametrize("variant", [pytest.param(each, id=each.name) for each in VARIANTS])
def test_without_it_promises_fall_and_the_shortest_story_says_how(variant: Variant, figures: Report) -> None:
    for promise, steps in variant.falls.items():
        found = explore(variant.habits, variant.bounds, limit=LIMIT, promises=[promise])
        assert found.broken == promise, str(found)
        assert len(found.story) == steps, str(found)
    figures("model variants refuted", 1)


def test_the_unbroken_one_is_explored_in_bounds_as_wide_as_any_variant_is() -> None:
    for variant in VARIANTS:
        assert any(_within(variant.bounds, wider) for wider in (BOUNDS | IN_THE_LAB).values()), variant.name


def _within(bounds: Bounds, wider: Bounds) -> bool:
    """Whether whatever may happen in `bounds` may happen in `wider`."""
    same = (bounds.marks, bounds.lease_limit, bounds.reads_apart) == (wider.marks, wider.lease_limit, wider.reads_apart)
    return same and all(one <= other for one, other in zip(bounds, wider, strict=True))


def test_every_promise_can_fall() -> None:
    assert {promise for variant in VARIANTS for promise in variant.falls} == set(ALL)
