"""The seams of one simulated process: its clocks, its chance, its identities, all from the seed and from virtual time alone."""

import random
import uuid
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from coatcheck.seams import Clock, Faults, Ids, Jitter, Seams
from simulation.loop import BEGINS_AT_S, VirtualLoop
from simulation.network import SimConnect, SimNetwork

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def now_of(loop: VirtualLoop) -> datetime:
    """The true instant."""
    return _at(loop.time())


@lru_cache(maxsize=64)
def _at(time_s: float) -> datetime:
    """One instant is asked for again and again: by every row of a claim."""
    return EPOCH + timedelta(seconds=round(time_s - BEGINS_AT_S, 6))


class SimClock(Clock):
    """`skew_s`: how far this host's wall clock is off. Its boot was at an instant of its own."""

    def __init__(self, loop: VirtualLoop, *, skew_s: float = 0.0, booted_s: float = 0.0) -> None:
        self._loop = loop
        self.skew_s = skew_s
        self._booted_s = booted_s

    def boottime(self) -> float:
        return self._loop.time() + self._booted_s

    def now(self) -> datetime:
        return now_of(self._loop) + timedelta(seconds=self.skew_s)


class SimIds(Ids):
    """Version 7 identities in the order in which they are made."""

    def __init__(self, loop: VirtualLoop, chance: random.Random, name: str) -> None:
        self._loop = loop
        self._chance = chance
        self._name = name
        self._lives = 0

    def uuid7(self) -> uuid.UUID:
        milliseconds = int(now_of(self._loop).timestamp() * 1000)
        bits = self._chance.getrandbits(74)
        high, low = bits >> 62, bits & ((1 << 62) - 1)
        return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)

    def incarnation(self) -> str:
        self._lives += 1
        return f"{self._name}-{self._chance.getrandbits(32):08x}"


def seams_of(
    loop: VirtualLoop,
    network: SimNetwork,
    chance: random.Random,
    *,
    name: str,
    faults: Faults | None = None,
    clock: SimClock | None = None,
) -> Seams:
    """What one process runs on."""
    return Seams(
        clock=clock or SimClock(loop),
        ids=SimIds(loop, chance, name),
        jitter=Jitter(chance.getrandbits(32)),
        connect=SimConnect(network),
        faults=faults or Faults(),
    )
