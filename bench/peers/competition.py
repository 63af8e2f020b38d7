"""One competition: each contestant's set-ups are swept, its best one runs several rounds in turn with the others', and the median counts.

Rounds are interleaved, so that what else the machine does falls on everybody. A contestant whose every set-up failed, or that failed in any
round, has failed: a fast answer that is sometimes wrong is no answer.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.peers import floor
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

    @property
    def best_peer(self) -> Standing | None:
        """The fastest contestant that is not coatcheck."""
        peers = [found for found in self.standings if not found.contestant.is_ours and found.median is not None]
        return max(peers, key=speed, default=None)

    @property
    def floor_per_second(self) -> float:
        """The median of the floors."""
        return statistics.median(found.per_second for found in self.floors) if self.floors else 0.0


def speed(standing: Standing) -> float:
    """Operations a second; 0 for who has failed."""
    return standing.median.per_second if standing.median is not None else 0.0


def held(stage: Stage, standings: Sequence[Standing], plan: Plan, tell: Callable[[str], None]) -> Competition:
    """Run it all; `tell` hears of each run."""
    numbers = iter(range(1_000_000))

    def run(standing: Standing, set_up: Mapping[str, Any], operations: int, *, counting: bool = False) -> Trial:
        task = Task(
            contestant=standing.contestant,
            python=standing.python,
            set_up=set_up,
            operations=operations,
            database=f"run_{next(numbers)}",
        )
        trial = ran(stage, task, counting=counting)
        tell(f"{trial.contestant} {dict(set_up)}: {trial.problem or f'{trial.per_second:,.0f} operations/s'}")
        return trial

    for standing in standings:
        for set_up in standing.contestant.set_ups:
            standing.sweep.append(run(standing, set_up, plan.sweep_operations))
    floors = []
    for _ in range(plan.rounds):
        for standing in standings:
            if standing.best_set_up is not None:
                standing.rounds.append(run(standing, standing.best_set_up, plan.operations))
        floors.append(floor.measured(stage, plan.operations, f"run_{next(numbers)}"))
        tell(f"pgbench: {floors[-1].per_second:,.0f} operations/s")
    for standing in standings:
        if standing.best_set_up is not None:
            standing.counted = run(standing, standing.best_set_up, min(COUNTED, plan.operations), counting=True)
    return Competition(plan=plan, standings=standings, floors=floors)
