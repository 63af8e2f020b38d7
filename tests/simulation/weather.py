"""What befalls connections, drawn from the seed: who is not reached, where a line is cut or falls silent, how long bytes take."""

import errno
import random
import socket

from simulation.journal import Journal
from simulation.network import Fate, Weather
from simulation.troubles import Mix, Trouble
from simulation.wire import FIN, RST, Way

_SLOWEST_S = 0.9
"""Of what was sent before a POST ended all arrives within SERVICE_LAG_S."""
_EARLY_BYTES, _LATE_BYTES = 400, 8_000


class DrawnWeather(Weather):
    """Of one run."""

    def __init__(self, mix: Mix, chance: random.Random, journal: Journal) -> None:
        self._mix = mix
        self._chance = chance
        self._journal = journal

    def resolving(self, host: str) -> float:
        if self._strikes(Trouble.UNKNOWN_NAME):
            self._journal.strike(Trouble.UNKNOWN_NAME, host)
            raise socket.gaierror(errno.ENOENT, "name unknown")
        return self._chance.uniform(0.0005, 0.01)

    def fate(self) -> Fate:
        to, back = self._way(), self._way()
        for trouble in (Trouble.REFUSED, Trouble.SILENCE):
            if self._strikes(trouble):
                self._journal.strike(trouble)
                return Fate(dialling="refused" if trouble is Trouble.REFUSED else "silence", to=to, back=back)
        self._struck(to, Trouble.CUT_REQUEST, Trouble.STALL_REQUEST)
        self._struck(back, Trouble.CUT_REPLY, Trouble.STALL_REPLY)
        return Fate(to=to, back=back)

    def _strikes(self, trouble: Trouble) -> bool:
        return self._chance.random() < self._mix.rate(trouble)

    def _way(self) -> Way:
        way = Way(latency_s=self._chance.uniform(0.0005, 0.02))
        if self._strikes(Trouble.SLOW_NETWORK):
            way.latency_s = self._chance.uniform(0.1, _SLOWEST_S)
            self._journal.strike(Trouble.SLOW_NETWORK)
        return way

    def _struck(self, way: Way, cut: Trouble, stall: Trouble) -> None:
        cuts, stalls = self._strikes(cut), self._strikes(stall)
        if cuts:
            way.cut_at, way.cut_end = self._place(), self._chance.choice((FIN, RST))
        if stalls:
            # some are over soon, some last longer than any patience
            way.stall_at, way.stall_s = self._place(), self._chance.choice((0.5, 2.0, 6.0, 20.0, 10_000.0))
        way.on_fault = lambda what: self._journal.strike(cut if what == "cut" else stall)

    def _place(self) -> int:
        most = self._chance.choice((1, _EARLY_BYTES, _LATE_BYTES))
        return self._chance.randrange(most)
