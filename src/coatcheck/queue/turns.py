"""Whose turn it is: what one claimer remembers from claim to claim, so that each tenant gets a share and a closed budget is not asked all the time."""

from collections import Counter
from collections.abc import Set as AbstractSet

from coatcheck.core.actions import Action

_Kind = tuple[Action, str]


class Turns:
    """Of each kind of message, an action for a provider: after which tenant the next walk begins, and in how many seconds its budget opens.

    `turns.take(Action.DISPATCH, "t1")` and `turns.give_back(Action.DISPATCH, "t1")` follow what is in hand.
    """

    def __init__(self) -> None:
        self._after: dict[_Kind, str] = {}
        self._opens_in_s: dict[_Kind, float] = {}
        self._in_hand: Counter[tuple[Action, str]] = Counter()

    def after(self, action: Action, provider: str) -> str:
        """The tenant whose turn was the last one; empty at the beginning of a round."""
        return self._after.get((action, provider), "")

    @property
    def served(self) -> AbstractSet[tuple[Action, str]]:
        """The tenants that have something in hand here, by action."""
        return self._in_hand.keys()

    @property
    def opens_in_s(self) -> float | None:
        """In how many seconds after the last claim the first closed budget opens that said when."""
        return min(self._opens_in_s.values(), default=None)

    def learn(self, action: Action, provider: str, *, after_tenant: str, opens_in_s: float | None) -> None:
        """Keep what a claim said of a kind."""
        kind = action, provider
        self._after[kind] = after_tenant
        self._opens_in_s.pop(kind, None)
        if opens_in_s is not None:
            self._opens_in_s[kind] = opens_in_s

    def take(self, action: Action, tenant_id: str | None) -> None:
        """Something of the tenant's is in hand."""
        if tenant_id is not None:
            self._in_hand[action, tenant_id] += 1

    def give_back(self, action: Action, tenant_id: str | None) -> None:
        """It is out of hand."""
        if tenant_id is None:
            return
        self._in_hand[action, tenant_id] -= 1
        if self._in_hand[action, tenant_id] <= 0:
            del self._in_hand[action, tenant_id]
