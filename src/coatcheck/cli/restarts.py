"""When a worker process that ended is started anew: soon, then later, and no more once it ends again and again. Pure: it is told the time.

Every end that its parent did not ask for counts, also one with 0, as of a process that somebody else told to end: now and then that is fine, and a
loop is a loop, whatever it says of itself. Only an end because the database was away, which is no fault of the process, never adds up to one;
and a call that was refused is refused again, so it is not repeated.
"""

from collections import deque

from coatcheck.errors import Refused, Unavailable

ENDS = 5
"""So many ends of one process,"""
WITHIN_S = 60.0
"""so close together, and it is given up. A message that kills whoever takes it is set aside before: its leases end further apart."""
FIRST_S = 1.0
LONGEST_S = 30.0


class Restarts:
    """Of one process among several: `Restarts().after(1, 17.0)` is how many seconds to wait; None means that it is not started anew."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=ENDS)
        self._outage_count = 0

    def after(self, code: int, now: float) -> float | None:
        """It ended at `now`, boot time in seconds, with an exit code, negative for a signal."""
        outage_count = self._outage_count + 1 if code == Unavailable.exit_code else 0
        self._outage_count = outage_count
        if code == Refused.exit_code:
            return None
        if outage_count:
            return min(LONGEST_S, FIRST_S * 2.0 ** min(outage_count - 1, 8))
        self._ends.append(now)
        recent_count = sum(1 for at in self._ends if now - at < WITHIN_S)
        return None if recent_count >= ENDS else FIRST_S * 2.0 ** (recent_count - 1)
