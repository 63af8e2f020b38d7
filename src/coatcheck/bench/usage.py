"""What limits a figure, measured and not guessed: who used how much of a core meanwhile, and how long the disk was waited for."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coatcheck.bench.kernel import machine_cpu_s
from coatcheck.seams import Clock

_FULL = 0.85
"""From this share on, one process that runs on one core has no more to give;"""
_CROWDED = 0.9
"""from this share of all cores on, nobody has;"""
_FLUSHING = 0.5
"""and from this share of the time on, it went to waiting for the disk."""
SHARED = "PostgreSQL"
"""The party that runs on several cores."""

Reading = Callable[[], float | None]
"""Seconds so far; None where nobody tells."""
Shares = tuple[float | None, ...]
"""Of one core, of each process of a party; None where nobody told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Shares of one core by party, of all cores for `machine`, and of the time for `flushing`; None where nobody told."""

    seconds: float
    parties: Mapping[str, Shares]
    machine: float | None
    flushing: float | None

    @property
    def limit(self) -> str:
        """What limited, first in a word, then in figures: `worker CPU (worker 0.97, PostgreSQL 0.41, … of 2 cores; flushing 0.12)`.

        Of a party of several processes the sum is told, then each: `worker 1.78 (0.93, 0.85)`. One that is full is enough.
        """
        return f"{self._cause} ({self._shares})"

    @property
    def _cause(self) -> str:
        cores = os.cpu_count() or 1
        full = [
            name
            for name, shares in self.parties.items()
            if name != SHARED and any((share or 0) >= _FULL for share in shares)
        ]
        if full:
            return f"{full[0]} CPU"
        if self.machine is not None and self.machine >= _CROWDED * cores:
            return "all cores busy"
        if (self.flushing or 0) >= _FLUSHING:
            return "fsync"
        return "waiting" if self.machine is not None else "unknown"

    @property
    def _shares(self) -> str:
        told = [f"{name} {_told(shares)}" for name, shares in self.parties.items()]
        if self.machine is not None:
            others = self.machine - sum(share or 0 for shares in self.parties.values() for share in shares)
            told.append(f"others {max(0.0, others):.2f}")
        flushing = "" if self.flushing is None else f"; flushing {self.flushing:.2f}"
        return f"{', '.join(told)} of {os.cpu_count()} cores{flushing}"


class Watch:
    """Begins when it is made. `usage()` is what was used since.

    `parties` tell processor seconds, one reading for each process; `flushed` the seconds that flushes took.
    """

    def __init__(self, clock: Clock, parties: Mapping[str, Sequence[Reading]], flushed: Reading) -> None:
        self._clock = clock
        self._parties = parties
        self._flushed = flushed
        self._flushed_s = flushed()
        self._machine_s = machine_cpu_s()
        self._began_s = {name: [reading() for reading in readings] for name, readings in parties.items()}
        self._began_at = clock.boottime()

    def usage(self) -> Usage:
        """What was used until now."""
        seconds = max(self._clock.boottime() - self._began_at, 1e-6)
        shares = {
            name: tuple(
                _share(began, reading(), seconds) for began, reading in zip(self._began_s[name], readings, strict=True)
            )
            for name, readings in self._parties.items()
        }
        return Usage(
            seconds=seconds,
            parties=shares,
            machine=_share(self._machine_s, machine_cpu_s(), seconds),
            flushing=_share(self._flushed_s, self._flushed(), seconds),
        )


def _told(shares: Shares) -> str:
    each = ["?" if share is None else f"{share:.2f}" for share in shares]
    if len(shares) == 1:
        return each[0]
    known = [share for share in shares if share is not None]
    whole = f"{sum(known):.2f}" if len(known) == len(shares) else "?"
    return f"{whole} ({', '.join(each)})"


def _share(began: float | None, ended: float | None, seconds: float) -> float | None:
    return None if began is None or ended is None else max(0.0, ended - began) / seconds
