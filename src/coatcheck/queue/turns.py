"""Whose turn it is: what one claimer remembers from claim to claim, so that each tenant gets a share and a closed budget is not asked all the time."""

from collections import Counter
from collections.abc import Set as AbstractSet
from typing import Final

from coatcheck.core.actions import Action

Spot = tuple[str, int]
"""A place in the ring of tenants: one of a tenant's precedences."""
BEGINNING: Final[Spot] = ("", -32768)
"""Before everybody."""


class Turns:
    """Of each kind of message, an action for a provider: after which spot the next walk begins, and in how many seconds its budget opens.

    `turns.take(Action.DISPATCH, "t1")` and `turns.give_back(Action.DISPATCH, "t1")` follow what is in hand.
    """

    def __init__(self) -> None:
        self._after: dict[tuple[Action, str], Spot] = {}
        self._opens_in_s: list[float] = []
        self._in_hand: Counter[tuple[Action, str]] = Counter()

    def after(self, action: Action, provider: str) -> Spot:
        """Where the last walk ended."""
        return self._after.get((action, provider), BEGINNING)

    @property
    def served(self) -> AbstractSet[tuple[Action, str]]:
        """The tenants that have something in hand here, by action."""
        return self._in_hand.keys()

    @property
    def opens_in_s(self) -> float | None:
        """In how many seconds after the last claim the first budget opens of those that stopped it and said when."""
        return min(self._opens_in_s, default=None)

    def asked(self) -> None:
        """A claim has an answer: what the one before said of budgets is old."""
        self._opens_in_s.clear()

    def learn(self, action: Action, provider: str, *, after: Spot | None, opens_in_s: float | None) -> None:
        """Keep what the claim said of a kind."""
        if after is not None:
            self._after[action, provider] = after
        if opens_in_s is not None:
            self._opens_in_s.append(opens_in_s)

    def take(self, action: Action, tenant_id: str) -> None:
        """Something of the tenant's is in hand."""
        self._in_hand[action, tenant_id] += 1

    def give_back(self, action: Action, tenant_id: str) -> None:
        """It is out of hand."""
        self._in_hand[action, tenant_id] -= 1
        if self._in_hand[action, tenant_id] <= 0:
            del self._in_hand[action, tenant_id]
