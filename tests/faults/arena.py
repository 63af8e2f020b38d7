"""A stage for many trials in one database: each has a provider and an account of its own, so that nobody takes another's work.

Only what is in doubt may be concluded by anyone, and only once its lease is over: time moves when a group of trials says so.
"""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import postgres
from coatcheck import Coatcheck, NotCancellable
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.seams import Point
from coatcheck.sim import ThreadedService
from faults.child import Child
from faults.points import Fate
from faults.stage import ALWAYS, QUICK, Stage
from faults.strike import Deed, Strike, written
from faults.verdict import Asked, Verdict, judged, logged

PROVIDERS = "PROVIDERS"
"""Among the changes of a worker's settings: the names of its providers."""
Order = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Trial:
    """One operation and what befalls those who have it in hand. `provider` is its alone; `changes` are settings of its workers."""

    provider: str
    operation_id: UUID
    key: str
    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return operation_text(OperationId(self.operation_id))


class Arena(Stage):
    """`trial()` enqueues, `strike(trial, Strike(…))` lets a worker meet its fate, `come_to_rest()` ends all that was left."""

    def __init__(self, database: postgres.Database, sim: ThreadedService, folder: Path) -> None:
        super().__init__(database, sim, folder)
        self.trials: list[Trial] = []
        self.struck: set[UUID] = set()
        self.asked: list[Asked] = []
        self._providers = itertools.count(1)

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        """Variables of a worker of the providers in `changes`."""
        given = dict(changes)
        names = given.pop(PROVIDERS, "genace").split()
        found = super().environment({name: value for name, value in given.items() if name.startswith("COATCHECK_")})
        found = {name: value for name, value in found.items() if "__GENACE__" not in name}
        settings = {"BASE_URL": self.sim.base_url, **ALWAYS}
        settings |= {name: value for name, value in given.items() if not name.startswith("COATCHECK_")}
        return found | {
            f"COATCHECK_PROVIDERS__{each.upper()}__{name}": value for each in names for name, value in settings.items()
        }

    # -- trials -------------------------------------------------------------------------------------------------------

    def trial(self, job: Mapping[str, Any] = QUICK, **changes: str) -> Trial:
        """One more operation at a provider of its own."""
        provider = f"p{next(self._providers)}"
        (number,) = self._numbers(1)
        key = f"a red bird {number}"
        operation_id = self._enqueue({"prompt": key, "sim": dict(job)}, provider=provider)
        made = Trial(provider=provider, operation_id=operation_id, key=key, changes={PROVIDERS: provider, **changes})
        self.trials.append(made)
        self.asked.append(Asked(key=key, answer="ok"))
        return made

    def strike(self, trial: Trial, *strikes: Strike, **changes: str) -> Child:
        """A worker of the trial's provider on which these befall."""
        self.struck.add(trial.operation_id)
        return self.worker(*strikes, until_idle=True, **{**trial.changes, **changes})

    def state(self, trial: Trial) -> tuple[str, str, str]:
        found = self.operation(trial.operation_id)
        return found["phase"], found["render_state"], found["delivery_state"]

    def wish(self, trial: Trial) -> None:
        """Somebody wants the operation cancelled, and it may be too late for that."""
        asyncio.run(self._wish(trial))

    async def _wish(self, trial: Trial) -> None:
        async with Coatcheck(self.settings({**trial.changes, "COATCHECK_DATABASE_URL": self.url})) as coatcheck:
            # that it is recorded with a job that exists is what the table of fates rests on
            with suppress(NotCancellable):
                await coatcheck.for_operator("eve").cancel(trial.name, reason="ordered by mistake")

    def decides(self, choice: str, trials: Iterable[Trial]) -> None:
        """A person decides each doubt the same way: `arena.decides("redispatch", doubts)`."""
        asyncio.run(self._decides(choice, list(trials)))

    async def _decides(self, choice: str, trials: list[Trial]) -> None:
        if not trials:
            return
        changes = {**all_of(trials), "COATCHECK_DATABASE_URL": self.url}
        async with Coatcheck(self.settings(changes)) as coatcheck:
            person = coatcheck.for_operator("eve")
            for trial in trials:
                await getattr(person, choice)(trial.name, reason="decided by somebody")

    def commands(self, trial: Trial, strike: Strike) -> Child:
        """A person's command to cancel, in a process that is struck."""
        self.struck.add(trial.operation_id)
        env = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
        env |= self.environment({**trial.changes, "COATCHECK_DATABASE_URL": self.url})
        return self.child("operator", [written([strike]), "cancel", trial.name], env=env)

    # -- customers ----------------------------------------------------------------------------------------------------

    def orders(self, count: int, *, provider: str = "genace", job: Mapping[str, Any] = QUICK) -> list[Order]:
        """What a customer may ask for, different from all else."""
        keys = [f"a red bird {number}" for number in self._numbers(count)]
        return [
            {"tenant_id": "ada", "key": key, "provider": provider, "specification": {"prompt": key, "sim": dict(job)}}
            for key in keys
        ]

    def customer(self, orders: Sequence[Order], *strikes: Strike) -> Child:
        """An application that asks for these, one after the other, and writes down what it heard."""
        arguments = [self.url, written(strikes), os.fspath(self.log), json.dumps(list(orders))]
        return self.child("customer", arguments, env=os.environ)

    @property
    def log(self) -> Path:
        """Where all customers write."""
        return self.folder / "customers.log"

    def passes(self, seconds: float) -> None:
        """Let so much of a life pass, for a kill at any instant of it."""
        assert self.nursery is not None
        self.nursery.lives_on(seconds)

    # -- the end ------------------------------------------------------------------------------------------------------

    def come_to_rest(self, **changes: str) -> Verdict:
        """Every lease ends and a healthy worker of every provider does what is left; twice, for the second time nothing may be left to do."""
        kinds = kinds_of(self.trials) or [{PROVIDERS: "genace"}]
        posts: list[int] = []
        for _ in range(2):
            for kind in kinds:
                self.finish(**kind, **changes)
            posts.append(len(self.sim.posts))
        assert posts[0] == posts[1]
        verdict = self.judge()
        sys.stdout.write(f"{verdict}\n")
        return verdict

    def judge(self) -> Verdict:
        return judged(self.record(), [*self.asked, *logged(self.log)], self.struck)


def all_of(trials: Iterable[Trial]) -> dict[str, str]:
    """The setting of a worker that serves these trials' providers."""
    return {PROVIDERS: " ".join(trial.provider for trial in trials)}


def kinds_of(trials: Iterable[Trial]) -> list[dict[str, str]]:
    """Settings of the workers that serve these trials' providers: one worker for all whose settings are the same."""
    kinds: dict[frozenset[tuple[str, str]], list[Trial]] = {}
    for trial in trials:
        settings = {name: value for name, value in trial.changes.items() if name not in (PROVIDERS, "SEND_S")}
        kinds.setdefault(frozenset(settings.items()), []).append(trial)
    return [{**dict(settings), **all_of(alike)} for settings, alike in kinds.items()]


def ended_as(arena: Arena, trial: Trial, fate: Fate, where: object) -> None:
    """The trial's operation ended as the table says, with no more POSTs and dispatches than it may have."""
    phase, _, delivery = arena.state(trial)
    assert (phase, delivery) == fate.ends, where
    assert arena.posts(trial.operation_id) in fate.posts, where
    assert len(arena.dispatches(trial.operation_id)) <= 1, where


def killing(point: Point, trial: Trial, *, at_bytes: int = 0, deed: Deed = Deed.KILL) -> Strike:
    """A strike on the trial's own operation, wherever the point is one of an operation's course."""
    return Strike(point=point, deed=deed, at_bytes=at_bytes, operation=trial.name if is_own(point) else "")


def is_own(point: Point) -> bool:
    """Whether the point is passed in a task that bears an operation's name."""
    return point.value[0] in "DOVRKL" or point in (Point.B5_LOOK_REPORT_SENT, Point.B6_LOOK_REPORTED)
