"""When a worker process that ended is started anew: soon, then later, and no more once it dies again and again. Pure: it is told the time.

What counts is a death. An end that was asked for, and one because the database was away, which is no fault of the process, never add up to a
loop; and a call that was refused is refused again, so it is not repeated.
"""

from collections import deque

from coatcheck.errors import Refused, Unavailable

DEATHS = 5
"""So many deaths of one process,"""
WITHIN_S = 60.0
"""so close together, and it is given up. A message that kills whoever takes it is set aside before: its leases end further apart."""
FIRST_S = 1.0
LONGEST_S = 30.0


class Restarts:
    """Of one process among several: `Restarts().after(1, 17.0)` is how many seconds to wait; None means that it is not started anew."""

    def __init__(self) -> None:
        self._deaths: deque[float] = deque(maxlen=DEATHS)
        self._outage_count = 0

    def after(self, code: int, now: float) -> float | None:
        """It ended at `now`, boot time in seconds, with an exit code, negative for a signal."""
        outage_count = self._outage_count + 1 if code == Unavailable.exit_code else 0
        self._outage_count = outage_count
        if code == Refused.exit_code:
            return None
        if code == 0:
            return FIRST_S
        if outage_count:
            return min(LONGEST_S, FIRST_S * 2.0 ** min(outage_count - 1, 8))
        self._deaths.append(now)
        recent_count = sum(1 for at in self._deaths if now - at < WITHIN_S)
        return None if recent_count >= DEATHS else FIRST_S * 2.0 ** (recent_count - 1)
