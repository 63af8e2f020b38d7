"""Every world that can be reached, nearest first, so that the first broken promise has the shortest story."""

import gc
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from model.moves import Habits, moves
from model.promises import ALL, Judge
from model.world import Budget, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What was found: how many worlds, whether all of them, and the shortest story that breaks a promise."""

    worlds: int
    moves: int
    closed: bool
    broken: str | None = None
    story: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.broken is None:
            return f"{self.worlds} worlds, {self.moves} moves, {'all' if self.closed else 'not all'} of them"
        return "\n".join([f"{self.broken} is broken after:", *(f"  {line}" for line in self.story)])


class _Step(NamedTuple):
    before: World
    label: str
    swapped: bool


def explore(habits: Habits, budget: Budget, *, limit: int, promises: Collection[str] = ALL) -> Explored:
    """Look at every world within `budget`, at most `limit` of them; stop at the first broken promise."""
    gc.disable()  # every world is kept, so there is no garbage to look for
    try:
        return _explore(habits, budget, limit, promises)
    finally:
        gc.enable()


def _explore(habits: Habits, budget: Budget, limit: int, promises: Collection[str]) -> Explored:
    judge = Judge.watching(promises)
    start = World(budget=budget)
    came: dict[World, _Step | None] = {start: None}
    queue, count = deque([start]), 0
    while queue and len(came) < limit:
        world = queue.popleft()
        for move in moves(world, habits):
            count += 1
            after = move.world.ordered()
            promise = judge.broken_by(world, move) or (None if after in came else judge.broken_in(after))
            if promise is not None:
                story = _story(came, _Step(world, move.label, swapped=False))
                return Explored(worlds=len(came), moves=count, closed=False, broken=promise, story=story)
            if after not in came:
                came[after] = _Step(world, move.label, swapped=after is not move.world)
                queue.append(after)
    return Explored(worlds=len(came), moves=count, closed=not queue)


def _story(came: dict[World, _Step | None], last: _Step) -> tuple[str, ...]:
    """How it came to `last`, each worker under one name from beginning to end although worlds are kept in an order of their own."""
    steps = [last]
    while (step := came[steps[-1].before]) is not None:
        steps.append(step)
    lines, names = [], ("Ann", "Bob")
    for step in reversed(steps):
        lines.append(step.label.replace("worker 0", names[0]).replace("worker 1", names[1]))
        names = names[::-1] if step.swapped else names
    return tuple(lines)
