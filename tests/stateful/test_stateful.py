"""The real store and the books of another hand say the same after every step of any story."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import initialize, run_state_machine_as_test

import postgres
from coatcheck.queue import leases
from coatcheck.store import door, operations
from figures import Report, Scale
from stateful.around import Around
from stateful.compared import Compared
from stateful.hands import Hands
from stateful.leasing import Leasing
from stateful.machine import StoreMachine
from stateful.writing import Writing

SEEN = ("enqueue", "mark", "conclude", "look", "deliver", "claimed", "twice")
"""What the stories must have told, each at least once: nothing is found by a step that is never taken."""
RARE = (
    *("enqueue created", "enqueue existing", "enqueue key_reused"),
    *("mark applied", "mark stale", "mark refused", "mark paused", "mark allowance"),
    *(
        "conclude accepted applied",
        "conclude accepted evidence",
        "conclude accepted owned",
        "conclude throttled applied",
    ),
    *("adopt applied", "adopt owned", "cancel applied", "cancel stale", "redispatch applied", "redispatch refused"),
    *("lease_ended applied", "lease_ended stale", "missing applied", "prove_absent applied", "write_off applied"),
    *("look rendering applied", "look succeeded applied", "look failed applied"),
    *("deliver delivered applied", "deliver delivered stale", "deliver failed applied"),
    *("release held", "release lost", "renew held", "renew lost", "park held", "park lost", "acknowledge lost"),
    *("twice applied", "twice stale", "twice evidence", "killed", "unseen"),
)
"""What very many stories surely tell."""


@pytest.fixture
def hands(database: postgres.Database) -> Iterator[Hands]:
    made = Hands(database)
    yield made
    made.close()


def told(
    hands: Hands, machine: type[Compared] = StoreMachine, *, examples: int, steps: int = 40, found: bool = False
) -> Counter[str]:
    """Tell so many stories; how often each thing happened."""
    counts: Counter[str] = Counter()

    bound = type("Bound", (machine,), {"hands": hands, "counts": counts})
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
    run_state_machine_as_test(bound, settings=chosen)
    return counts


@pytest.mark.timeout(3600)
def test_the_store_and_the_books_say_the_same_whatever_happens(hands: Hands, figures: Report, lab_scale: Scale) -> None:
    counts = told(hands, examples=lab_scale(ci=40, lab=1000))
    wanted = SEEN + RARE[: lab_scale(ci=0, lab=len(RARE))]
    assert not {each for each in wanted if not any(what.startswith(each) for what in counts)}
    figures("stateful examples", counts["examples"])
    figures("stateful steps", counts["steps"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A statement that says something else than it should, as its module finds it."""

    module: ModuleType
    statement: str
    words: str
    instead: str = ""
    machine: type[Compared] = Writing
    """The part of the whole that has to do with it: the rest would only take time."""

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


class Spending(Writing, Around):
    """Two operations of a tenant that may spend no more than one of them costs."""

    @initialize()
    def be_short_of_money(self) -> None:
        self.enqueue(tenant="t1", key="l", text="1", late=False)
        self.a_person_sets_limits(tenant="t1", limit=3, paused=False)


class Superseded(Writing):
    """An operation whose first dispatch was throttled, and whose second is under way."""

    @initialize()
    def be_sent_twice(self) -> None:
        if not self.books.records:
            self.begin()
        self.mark(place=0, worker="ann", again=True)
        self.conclude(place=0, outcome="throttled", worker="ann", stray=1, again=False)
        self.mark(place=0, worker="ann", again=True)


class Disputed(Writing):
    """An operation in doubt, because the id that it was told is another's."""

    @initialize()
    def be_told_anothers_job(self) -> None:
        if not self.books.records:
            self.begin()
        for stray in (1, 0):
            self.mark(place=0, worker="ann", again=True)
            self.conclude(place=0, outcome="accepted", worker="ann", stray=stray, again=False)


FAULTS = {
    "a mark without its revision": Fault(module=door, statement="mark", words=" or locked.revision <> input.revision"),
    "a mark above the allowance": Fault(
        module=door, statement="mark", words="wanted.wanted > purses.left_over", instead="false", machine=Spending
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
        machine=Superseded,
    ),
    "a conclusion against what is proven": Fault(
        module=door, statement="conclude", words=" and not traced.disproven", machine=Disputed
    ),
    "a delivery over a delivered one": Fault(
        module=door,
        statement="deliver",
        words="outputs.state <> 'delivered' and ",
        instead="outputs.state is not null and ",
    ),
    "a release with any token": Fault(
        module=leases, statement="release", words="held.lease_token = input.lease_token and ", machine=Leasing
    ),
    "a lease that is kept with any token": Fault(
        module=leases, statement="renew", words="held.lease_token = input.lease_token and ", machine=Leasing
    ),
    "a read for any tenant": Fault(
        module=operations,
        statement="find",
        words="operation.tenant_id = %(tenant_id)s::text",
        instead="true",
        machine=Compared,
    ),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", [pytest.param(each, id=name) for name, each in FAULTS.items()])
def test_a_planted_fault_is_found(hands: Hands, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    fault.planted(monkeypatch)
    with pytest.raises(AssertionError):
        told(hands, fault.machine, examples=400, found=True)
