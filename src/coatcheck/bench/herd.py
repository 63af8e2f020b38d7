"""What a service is asked when it is back after an outage, while many renders wait for it: as the service counts its looks itself.

All of them are due by then. With a budget the account is asked so many times a second and no more; without one, as fast as the worker can.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coatcheck.bench import flight, lifecycle
from coatcheck.bench.books import PROVIDER, Books
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.bench.hands import Hand
from coatcheck.bench.patience import until
from coatcheck.bench.service import Service
from coatcheck.seams import NO_FAULTS
from coatcheck.store.budgets import LAST_PROBE_S, Budget, change_budget

OUTAGE: Mapping[str, object] = {"on": "look", "times": "always", "kind": "status", "status": 503}
_TENTHS = 10
_SHARE = 1 / 20
"""So large a part of the renders may be looked at in each second, within these bounds."""
_LEAST_PER_S, _MOST_PER_S = 10.0, 250.0
_AWAY_S, _AWAY_SHORTLY_S = 60.0, 8.0
"""The pause between two looks at one render grows to a minute: after as long all are due."""
_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """Looks in each tenth of a second since the first that came when the service was back."""

    tenths: Sequence[int]
    limit: str

    @property
    def busiest(self) -> int:
        """Looks in the busiest second, wherever it begins."""
        return max((sum(self.tenths[begin : begin + _TENTHS]) for begin in range(len(self.tenths))), default=0)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return len(self.tenths) / _TENTHS

    @property
    def curve(self) -> str:
        """Looks in each of the first seconds."""
        each = [sum(self.tenths[begin : begin + _TENTHS]) for begin in range(0, len(self.tenths), _TENTHS)]
        more = f" … in all {len(each)} s" if len(each) > _SHOWN else ""
        return " ".join(map(str, each[:_SHOWN])) + more


def measure(ground: Ground) -> Sequence[Figure]:
    """Looks a second after an outage, with a budget and without."""
    per_s = min(_MOST_PER_S, max(_LEAST_PER_S, ground.scale.renders * _SHARE))
    with ground.books() as books, ground.serving() as service:
        books.clear()
        with ground.working(service, **flight.polling(ground.scale.renders)) as hand:
            lifecycle.warm(ground, books)
            flight.accepted(ground, books, ground.scale.renders)
            flight.looked_at(ground, hand, lambda: flight.are_looked_at(service, ground.scale.renders))
            figures = _figures(f"a budget of {per_s:g}/s", _budgeted(ground, books, service, hand, per_s), ground)
            figures += _figures("no budget", _returned(ground, books, service, hand), ground)
        books.clear()
    return figures


def _budgeted(ground: Ground, books: Books, service: Service, hand: Hand, per_s: float) -> Return:
    """With a budget, which is lifted afterwards."""
    _allow(ground, per_s)
    try:
        return _returned(ground, books, service, hand)
    finally:
        _allow(ground, None)


def _allow(ground: Ground, per_s: float | None) -> None:
    asyncio.run(change_budget(ground.url, PROVIDER, Budget(looks_per_s=per_s), faults=NO_FAULTS))


def _returned(ground: Ground, books: Books, service: Service, hand: Hand) -> Return:
    """Have an outage and wait until as many looks as there are renders were answered after it."""
    seams, count = ground.seams, ground.scale.renders
    service.follow(OUTAGE)
    seams.pause(_AWAY_SHORTLY_S if ground.scale.is_hurried else _AWAY_S)
    service.follow()
    tenth = int(seams.clock.boottime() * _TENTHS)
    before: int = service.looks()["count"]
    within_s = flight.patience_s(count) + LAST_PROBE_S
    watch = ground.watch(books, worker=hand.pids, service=[service.pid])

    def is_over() -> bool:
        hand.check()
        seen: int = service.looks()["count"]
        return seen - before >= count

    until(is_over, seams=seams, what=f"{count} looks after the outage", within_s=within_s, every_s=0.5)
    return Return(tenths=since(tenth, service.looks()["by_tenth"], count), limit=watch.usage().limit)


def since(tenth: int, by_tenth: Sequence[tuple[int, int]], count: int) -> Sequence[int]:
    """The looks of each tenth, from the first one behind that tenth in which there was any, until there were so many."""
    counted = {each: looks for each, looks in by_tenth if each > tenth}
    tenths: list[int] = []
    for each in range(min(counted), max(counted) + 1):
        if sum(tenths) < count:
            tenths.append(counted.get(each, 0))
    return tenths


def _figures(manner: str, found: Return, ground: Ground) -> list[Figure]:
    """The busiest second, and how long all took."""
    ground.telling(f"  looks a second since the service is back, {manner}: {found.curve}")
    return [
        Figure(
            name=f"looks in the busiest second after an outage, {manner}",
            value=found.busiest,
            unit="1/s",
            limited_by=f"{manner}; {found.limit}",
        ),
        Figure(
            name=f"until {ground.scale.renders} renders were looked at again, {manner}",
            value=found.seconds,
            unit="s",
            limited_by=f"{manner}; {found.limit}",
        ),
    ]
