"""How much a claim begins at once, so that one tenant's backlog leaves the machine quick for the others.

What is in hand waits for the processor and the database, and so does whatever comes after it: where claims take much longer than they can,
less is begun with the next one, else a little more. Where one tenant alone has work, nobody waits for it, and a worker is as full as it may be.
"""

from collections.abc import Set as AbstractSet
from typing import Final

FACTOR: Final = 1.5
"""A claim that takes so many times as long as the quickest one lately tells that too much is in hand,"""
SLOW_S: Final = 0.006
"""unless it was quick all the same."""
LEAST: Final = 2
COMPANY_S: Final = 30.0
"""For how long a second tenant that was seen counts as company."""
_LESS: Final = 0.6
_FADES: Final = 1.004
"""The quickest claim fades with each one after it, for a machine that has become slower for good."""


class Pace:
    """Halves, nearly, and grows by one: `pace.starts` is how many of each kind the next claim begins.

    Example: `pace.learn(now, took_s=0.03, begun=32, tenants={"ada", "ben"})` after each claim.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._quickest_s = 1.0
        self._company_until = 0.0
        self._tenant: str | None = None
        self.starts = most

    def learn(self, now: float, *, took_s: float, begun: int, tenants: AbstractSet[str]) -> None:
        """A claim ended at `now`, boot time in seconds; it took so long and began so many messages of a kind, of these tenants."""
        self._quickest_s = min(self._quickest_s * _FADES, took_s)
        if len(tenants) > 1 or (tenants and self._tenant not in (None, *tenants)):
            self._company_until = now + COMPANY_S
        self._tenant = next(iter(tenants), self._tenant)
        if now >= self._company_until:
            self.starts = self._most
        elif took_s > max(SLOW_S, FACTOR * self._quickest_s):
            self.starts = max(LEAST, round(min(self.starts, begun) * _LESS))
        else:
            self.starts = min(self._most, self.starts + 1)
