"""One competition: each contestant's set-ups are swept, its best one runs several rounds in turn with the others', and the median counts.

Rounds are interleaved, so that what else the machine does falls on everybody. A contestant whose every set-up failed, or that failed in any
round, has failed: a fast answer that is sometimes wrong is no answer.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bench.peers import floor
from bench.peers.alone import ALONE, Requests, measured_alone
from bench.peers.contestants import Contestant
from bench.peers.floor import Floor
from bench.peers.program import Task
from bench.peers.stage import Stage
from bench.peers.trial import Trial, ran

COUNTED = 500
"""Operations of the run whose statements are counted: they hardly depend on the number, and logging them all is slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is run."""

    operations: int
    sweep_operations: int
    rounds: int


@dataclass(slots=True, kw_only=True)
class Standing:
    """One contestant in the competition."""

    contestant: Contestant
    python: str
    sweep: list[Trial] = field(default_factory=list)
    rounds: list[Trial] = field(default_factory=list)
    counted: Trial | None = None

    @property
    def problem(self) -> str:
        """Why it has failed."""
        if all(trial.problem for trial in self.sweep):
            return next((trial.problem for trial in self.sweep), "nothing was run")
        return next((trial.problem for trial in self.rounds if trial.problem), "")

    @property
    def best_set_up(self) -> Mapping[str, Any] | None:
        """The fastest set-up of the sweep."""
        right = [trial for trial in self.sweep if not trial.problem]
        return max(right, key=lambda trial: trial.per_second).set_up if right else None

    @property
    def median(self) -> Trial | None:
        """The round that counts."""
        if self.problem or not self.rounds:
            return None
        return sorted(self.rounds, key=lambda trial: trial.per_second)[(len(self.rounds) - 1) // 2]

    @property
    def spread(self) -> tuple[float, float]:
        """The slowest and the fastest round, in operations a second."""
        speeds = [trial.per_second for trial in self.rounds] or [0.0]
        return min(speeds), max(speeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Competition:
    """Everything that was measured."""

    plan: Plan
    standings: Sequence[Standing]
    floors: Sequence[Floor]
    requests: Sequence[Requests]
    """Of each way to make them, as many as there were rounds."""

    @property
    def best_peer(self) -> Standing | None:
        """The fastest contestant that is not coatcheck."""
        peers = [found for found in self.standings if not found.contestant.is_ours and found.median is not None]
        return max(peers, key=speed, default=None)

    def alone(self, *, ours: bool) -> Requests | None:
        """The requests alone as coatcheck makes them, or as the peers do: the round that counts."""
        name = next(each.name for each in ALONE if each.is_ours is ours)
        rounds = sorted((found for found in self.requests if found.name == name), key=lambda found: found.per_second)
        return rounds[(len(rounds) - 1) // 2] if rounds else None

    @property
    def floor_per_second(self) -> float:
        """The median of the floors."""
        return statistics.median(found.per_second for found in self.floors) if self.floors else 0.0


def speed(standing: Standing) -> float:
    """Operations a second; 0 for who has failed."""
    return standing.median.per_second if standing.median is not None else 0.0


def held(
    stage: Stage, standings: Sequence[Standing], plan: Plan, alone: Mapping[str, str], tell: Callable[[str], None]
) -> Competition:
    """Run it all; `alone` has the interpreter of each environment that the requests alone need, `tell` hears of each run."""
    runs = _Runs(stage, plan, tell)
    for standing in standings:
        for set_up in standing.contestant.set_ups:
            standing.sweep.append(runs.trial(standing, set_up, plan.sweep_operations))
    floors: list[Floor] = []
    requests: list[Requests] = []
    for _ in range(plan.rounds):
        for standing in standings:
            if standing.best_set_up is not None:
                standing.rounds.append(runs.trial(standing, standing.best_set_up, plan.operations))
        floors.append(runs.floor())
        requests += [runs.requests(each, alone[each.requirements]) for each in ALONE]
    for standing in standings:
        if standing.best_set_up is not None:
            operations = min(COUNTED, plan.operations)
            standing.counted = runs.trial(standing, standing.best_set_up, operations, counting=True)
    return Competition(plan=plan, standings=standings, floors=floors, requests=requests)


class _Runs:
    """Runs one after the other, each under a name of its own, which is also that of its database where it has one."""

    def __init__(self, stage: Stage, plan: Plan, tell: Callable[[str], None]) -> None:
        self._stage = stage
        self._plan = plan
        self._tell = tell
        self._numbers = count()

    def trial(self, standing: Standing, set_up: Mapping[str, Any], operations: int, *, counting: bool = False) -> Trial:
        """One run of a contestant."""
        task = self._task(standing.contestant, standing.python, set_up, operations)
        trial = ran(self._stage, task, counting=counting)
        told = trial.problem or ("statements counted" if counting else f"{trial.per_second:,.0f} operations/s")
        self._tell(f"{trial.contestant} {dict(set_up)}: {told}")
        return trial

    def floor(self) -> Floor:
        """One run of pgbench."""
        found = floor.measured(self._stage, self._plan.operations, self._name())
        self._tell(f"pgbench: {found.per_second:,.0f} operations/s")
        return found

    def requests(self, contestant: Contestant, python: str) -> Requests:
        """The requests alone, once."""
        found = measured_alone(
            self._stage, self._task(contestant, python, contestant.set_ups[0], self._plan.operations)
        )
        self._tell(f"{found.name}: {found.per_second:,.0f} operations/s")
        return found

    def _task(self, contestant: Contestant, python: str, set_up: Mapping[str, Any], operations: int) -> Task:
        return Task(contestant=contestant, python=python, set_up=set_up, operations=operations, database=self._name())

    def _name(self) -> str:
        return f"run_{next(self._numbers)}"
