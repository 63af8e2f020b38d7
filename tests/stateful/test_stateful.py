"""The real store and the books of another hand say the same after every step of any story."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import postgres
from coatcheck.queue import leases
from coatcheck.store import door, operations
from figures import Report, Scale
from stateful.hands import Hands
from stateful.machine import StoreMachine


@pytest.fixture
def hands(database: postgres.Database) -> Iterator[Hands]:
    made = Hands(database)
    yield made
    made.close()


def told(hands: Hands, *, examples: int, steps: int = 40, found: bool = False) -> Counter[str]:
    """Tell so many stories; how often each thing happened."""
    counts: Counter[str] = Counter()

    class Bound(StoreMachine):
        pass

    Bound.hands, Bound.counts = hands, counts
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate] if found else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Bound, settings=chosen)
    return counts


@pytest.mark.timeout(3600)
def test_the_store_and_the_books_say_the_same_whatever_happens(hands: Hands, figures: Report, lab_scale: Scale) -> None:
    counts = told(hands, examples=lab_scale(ci=40, lab=2000))
    figures("stateful examples", counts["examples"])
    figures("stateful steps", counts["steps"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A statement that says something else than it should, as its module finds it."""

    module: ModuleType
    statement: str
    words: str
    instead: str = ""

    def planted(self, patch: pytest.MonkeyPatch) -> None:
        """Let the module find the broken one."""
        whole = self.module.statement
        room = "queue" if self.module is leases else "store"
        text: str = whole(room, self.statement)
        assert text.count(self.words) == 1, f"{self.words!r} is not what {self.statement}.sql says any more"
        broken = text.replace(self.words, self.instead)
        patch.setattr(
            self.module, "statement", lambda room, name: broken if name == self.statement else whole(room, name)
        )


FAULTS = {
    "a mark without its revision": Fault(module=door, statement="mark", words=" or locked.revision <> input.revision"),
    "a mark above the allowance": Fault(
        module=door, statement="mark", words="wanted.wanted > purses.left_over", instead="false"
    ),
    "a decision without its revision": Fault(
        module=door,
        statement="decide",
        words="coalesce(locked.revision = input.revision, false)",
        instead="locked.operation_id is not null",
    ),
    "a look without its revision": Fault(
        module=door, statement="snapshot", words="locked.revision = input.revision and "
    ),
    "a conclusion without its dispatch": Fault(
        module=door,
        statement="conclude",
        words="when locked.dispatch_id = input.dispatch_id then",
        instead="when true then",
    ),
    "a conclusion against what is proven": Fault(module=door, statement="conclude", words=" and not traced.disproven"),
    "a delivery over a delivered one": Fault(
        module=door,
        statement="deliver",
        words="outputs.state <> 'delivered' and ",
        instead="outputs.state is not null and ",
    ),
    "a release with any token": Fault(
        module=leases, statement="release", words="held.lease_token = input.lease_token and "
    ),
    "a lease that is kept with any token": Fault(
        module=leases, statement="renew", words="held.lease_token = input.lease_token and "
    ),
    "a read for any tenant": Fault(
        module=operations, statement="find", words="operation.tenant_id = %(tenant_id)s::text", instead="true"
    ),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", [pytest.param(each, id=name) for name, each in FAULTS.items()])
def test_a_planted_fault_is_found(hands: Hands, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    fault.planted(monkeypatch)
    with pytest.raises(AssertionError):
        told(hands, examples=400, found=True)
