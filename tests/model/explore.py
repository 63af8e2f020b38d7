"""Every state that can be reached, nearest first, so that the first broken promise has the shortest story.

A state is a world and what may still go wrong in it. What can happen in a world does not depend on the latter, so each world is thought
through once: its moves are kept as numbers, and the states are walked along them.
"""

import gc
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

from model.moves import Habits, Move, moves
from model.promises import ALL, Judge
from model.world import COSTS, Bounds, World, order, start

Edge = tuple[int, int, str | None]
"""To which world, at what cost, and the promise that this breaks."""
_PLACE = {cost: place for place, cost in enumerate(COSTS)}
NAMES = ("Ann", "Bob", "Cem", "Dee")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What was found: how many states, whether all of them, and the shortest story that breaks a promise."""

    worlds: int
    states: int
    closed: bool
    broken: str | None = None
    story: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.broken is None:
            return f"{self.states} states of {self.worlds} worlds, {'all' if self.closed else 'not all'} of them"
        return "\n".join([f"{self.broken} is broken after:", *(f"  {line}" for line in self.story)])


def explore(habits: Habits, bounds: Bounds, *, limit: int, promises: Collection[str] = ALL) -> Explored:
    """Look at every state within `bounds`, at most about `limit` of them; stop at the first broken promise."""
    gc.disable()  # every world is kept, so there is no garbage to look for
    try:
        return _Walk(_Atlas(habits, bounds, Judge.watching(promises))).explored(limit)
    finally:
        gc.enable()


class _Atlas:
    """The worlds by number, and for each the moves: to which world, at what cost, breaking which promise."""

    def __init__(self, habits: Habits, bounds: Bounds, judge: Judge) -> None:
        self.habits, self.bounds, self.judge = habits, bounds, judge
        self._numbers: dict[World, int] = {}
        self.worlds: list[World] = []
        self.edges: list[tuple[Edge, ...]] = []
        self.known: list[int] = []
        """For each world the costs whose moves were thought through, as bits: those that nobody can pay are not worth a thought."""
        self._broken: list[str | None] = []
        self._bounds: dict[int, Bounds] = {}
        self.number(start(bounds))

    def number(self, world: World) -> int:
        """The number of a world; a new one is judged."""
        known = self._numbers.setdefault(world, len(self.worlds))
        if known == len(self.worlds):
            self.worlds.append(world)
            self.edges.append(())
            self.known.append(0)
            self._broken.append(self.judge.broken_in(world))
        return known

    def expand(self, number: int, payable: int) -> None:
        """Think through what can happen in a world at the costs that can be paid and were not thought through before."""
        world, judge = self.worlds[number], self.judge
        new = payable & ~self.known[number]
        found = []
        for move in moves(world, self.habits, self._limited(payable)):
            cost = _PLACE[move.cost]
            if new >> cost & 1:
                to = self.number(move.world.ordered())
                found.append((to, cost, judge.broken_by(world, move) or self._broken[to]))
        self.edges[number] += tuple(found)
        self.known[number] |= payable

    def _limited(self, payable: int) -> Bounds:
        """The bounds without what cannot be paid."""
        if payable not in self._bounds:
            gone = {cost: 0 for place, cost in enumerate(COSTS) if place and not payable >> place & 1}
            self._bounds[payable] = Bounds(**{**self.bounds._asdict(), **gone})
        return self._bounds[payable]

    def move(self, number: int, to: int, cost: int) -> Move:
        """The move between two worlds, told again."""
        return next(
            move
            for move in moves(self.worlds[number], self.habits, self.bounds)
            if move.cost == COSTS[cost] and self._numbers[move.world.ordered()] == to
        )


class _Walk:
    """The states, each as one number: that of the world, times how many budgets there are, plus that of what is left."""

    def __init__(self, atlas: _Atlas) -> None:
        self._atlas = atlas
        budgets = list(product(*(range(getattr(atlas.bounds, name) + 1) for name in COSTS[1:])))
        numbers = {budget: number for number, budget in enumerate(budgets)}
        self._count = len(budgets)
        self._left = [[number, *_spent(budget, numbers)] for number, budget in enumerate(budgets)]
        self._payable = [sum(1 << cost for cost, rest in enumerate(left) if rest >= 0) for left in self._left]
        first = self._count - 1
        self._order, self._came = array("q", [first]), array("q", [0])
        self._seen = bytearray(self._count)
        self._seen[first] = 1

    def explored(self, limit: int) -> Explored:
        atlas, order, count = self._atlas, self._order, self._count
        position = 0
        while position < len(order) and len(order) < limit:
            world, left = divmod(order[position], count)
            if self._payable[left] & ~atlas.known[world]:
                atlas.expand(world, self._payable[left])
                self._seen.extend(bytes(count * len(atlas.worlds) - len(self._seen)))
            broken = self._walk(position, atlas.edges[world], self._left[left])
            if broken is not None:
                story = tuple(self._story(position, broken))
                return Explored(
                    worlds=len(atlas.worlds), states=len(order), closed=False, broken=broken[2], story=story
                )
            position += 1
        return Explored(worlds=len(atlas.worlds), states=len(order), closed=position == len(order))

    def _walk(self, position: int, edges: tuple[Edge, ...], left: list[int]) -> tuple[int, int, str] | None:
        """Go along every move that there is something left for; the one that breaks a promise, if any."""
        seen, count, order, came = self._seen, self._count, self._order, self._came
        for to, cost, broken in edges:
            rest = left[cost]
            if rest < 0:
                continue
            if broken is not None:
                return to, cost, broken
            state = to * count + rest
            if not seen[state]:
                seen[state] = 1
                order.append(state)
                came.append(position)
        return None

    def _story(self, position: int, broken: tuple[int, int, str]) -> Iterator[str]:
        """How it came to that, each worker under one name from beginning to end although worlds are kept in an order of their own."""
        path = [position]
        while path[-1]:
            path.append(self._came[path[-1]])
        states = [divmod(self._order[step], self._count) for step in reversed(path)]
        steps = [(world, after, self._left[left].index(rest)) for (world, left), (after, rest) in pairwise(states)]
        names = list(NAMES)
        for world, after, cost in [*steps, (states[-1][0], broken[0], broken[1])]:
            move = self._atlas.move(world, after, cost)
            yield move.told(names)
            names[: len(move.world.workers)] = [names[number] for number in order(move.world.workers)]


def _spent(budget: tuple[int, ...], numbers: dict[tuple[int, ...], int]) -> Iterator[int]:
    """For each cost, the number of what is left then; -1 where nothing is."""
    for place in range(len(budget)):
        yield numbers.get((*budget[:place], budget[place] - 1, *budget[place + 1 :]), -1)
