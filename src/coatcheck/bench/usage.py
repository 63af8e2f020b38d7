"""What limits a figure, measured and not guessed: who used how much of a core meanwhile, and how long the disk was waited for."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coatcheck.bench.processes import machine_cpu_s
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Shares of one core by party, of all cores for `machine`, and of the time for `flushing`; None where nobody told."""

    seconds: float
    parties: Mapping[str, float | None]
    machine: float | None
    flushing: float | None

    @property
    def limit(self) -> str:
        """What limited, first in a word, then in figures: `worker CPU (worker 0.97, PostgreSQL 0.41, … of 2 cores; flushing 0.12)`."""
        return f"{self._cause} ({self._shares})"

    @property
    def _cause(self) -> str:
        cores = os.cpu_count() or 1
        full = [name for name, share in self.parties.items() if name != SHARED and (share or 0) >= _FULL]
        if full:
            return f"{full[0]} CPU"
        if self.machine is not None and self.machine >= _CROWDED * cores:
            return "all cores busy"
        if (self.flushing or 0) >= _FLUSHING:
            return "fsync"
        return "waiting" if self.machine is not None else "unknown"

    @property
    def _shares(self) -> str:
        told = [f"{name} {'?' if share is None else f'{share:.2f}'}" for name, share in self.parties.items()]
        if self.machine is not None:
            others = self.machine - sum(share or 0 for share in self.parties.values())
            told.append(f"others {max(0.0, others):.2f}")
        flushing = "" if self.flushing is None else f"; flushing {self.flushing:.2f}"
        return f"{', '.join(told)} of {os.cpu_count()} cores{flushing}"


class Watch:
    """Begins when it is made. `parties` tell processor seconds, `flushed` the seconds that flushes took; `usage()` is what was used since."""

    def __init__(self, clock: Clock, parties: Mapping[str, Reading], flushed: Reading) -> None:
        self._clock = clock
        self._readings = {**parties, "": machine_cpu_s}
        self._flushed = flushed
        self._flushed_s = flushed()
        self._began_s = {name: reading() for name, reading in self._readings.items()}
        self._began_at = clock.boottime()

    def usage(self) -> Usage:
        """What was used until now."""
        seconds = max(self._clock.boottime() - self._began_at, 1e-6)
        shares = {name: _share(self._began_s[name], reading(), seconds) for name, reading in self._readings.items()}
        machine = shares.pop("")
        return Usage(
            seconds=seconds,
            parties=shares,
            machine=machine,
            flushing=_share(self._flushed_s, self._flushed(), seconds),
        )


def _share(began: float | None, ended: float | None, seconds: float) -> float | None:
    return None if began is None or ended is None else max(0.0, ended - began) / seconds
