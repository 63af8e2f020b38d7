"""How much a claim begins at once, so that one tenant's backlog leaves the machine quick for the others.

What is in hand waits for the processor and the database, and so does whatever comes after it: where claims take much longer than they can,
less is begun with the next one, else a little more. Where one tenant alone has work, nobody waits for it, and a worker is as full as it may be.
"""

from collections.abc import Set as AbstractSet
from typing import Final

FACTOR: Final = 1.35
"""A claim that takes so many times as long as the quickest one lately, for as many rows, tells that too much is in hand,"""
SLOW_S: Final = 0.006
"""unless it was quick all the same."""
LEAST: Final = 2
SMALLEST: Final = 1 / 16
"""The least share of a kind's places that a claim begins,"""
BURST: Final = 3 / 16
"""and, where claims are not quick, the largest: what is begun together keeps the processor busy together, and is as much with two claims."""
COMPANY_S: Final = 30.0
"""For how long a second tenant that was seen counts as company."""
_LESS: Final = 0.6
_MORE: Final = 1 / 32
_ROWS: Final = 16
"""So many rows take about as long as the claim itself."""
_MOST_ROWS: Final = 64
"""What is more than that tells little of a lone row."""
_FADES: Final = 1.004
"""The quickest claim fades with each one after it, for a machine that has become slower for good."""


class Pace:
    """Halves, nearly, and grows by little: `pace.starts(places)` is how many of a kind with so many places the next claim begins.

    Example: `pace.met(now, {"ada", "ben"})` and `pace.learn(now, took_s=0.03, rows=40, begun=0.5)` after each claim.
    """

    def __init__(self) -> None:
        self._quickest_s = 1.0
        self._company_until = 0.0
        self._tenant: str | None = None
        self._share = 1.0

    def starts(self, places: int) -> int:
        """How many the next claim begins where so many may be in hand at once."""
        return places if self._share >= 1 else max(LEAST, round(self._share * places))

    def has_company(self, now: float) -> bool:
        """Whether several tenants had something to do lately."""
        return now < self._company_until

    def met(self, now: float, tenants: AbstractSet[str]) -> None:
        """These tenants had something to do at `now`, boot time in seconds."""
        if len(tenants) > 1 or (tenants and self._tenant not in (None, *tenants)):
            self._company_until = now + COMPANY_S
        self._tenant = next(iter(tenants), self._tenant)

    def learn(self, now: float, *, took_s: float, rows: int, begun: float) -> None:
        """A claim ended at `now`; it took so long for so many rows and began at most this share of any kind's places."""
        lone_s = took_s / (1 + min(rows, _MOST_ROWS) / _ROWS)
        self._quickest_s = min(self._quickest_s * _FADES, lone_s)
        is_quick = took_s <= SLOW_S
        if not self.has_company(now):
            self._share = 1.0
        elif lone_s > FACTOR * self._quickest_s and not is_quick:
            # what began hardly anything was not slow for what it began
            counted = min(self._share, begun) if begun >= SMALLEST else self._share
            self._share = max(SMALLEST, counted * _LESS)
        elif is_quick or self._share < BURST:
            self._share = min(1.0, self._share + _MORE)
        else:
            self._share = BURST
