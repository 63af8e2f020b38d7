"""When the database was out of reach, as one worker's claims know it. A lease that ended meanwhile could not be given back: no fault of its message."""

from typing import Final

KEPT_S: Final = 600.0
"""How long an outage is remembered: what was in hand of other workers may be claimed late."""


class Outages:
    """Instants are boot time in seconds: `failed()` and `reached(began)` follow each claim, `away_s(now)` goes along with the next."""

    def __init__(self) -> None:
        self._reached_at: float | None = None
        self._is_away = False
        self._last: tuple[float, float] | None = None

    def failed(self) -> None:
        """A claim did not get through."""
        self._is_away = True

    def reached(self, at: float) -> None:
        """A claim that was begun then got through."""
        if self._is_away and self._reached_at is not None:
            self._last = self._reached_at, at
        self._is_away, self._reached_at = False, at

    def away_s(self, now: float) -> tuple[float, float] | None:
        """From and until how many seconds ago the database was away the last time; until now, if this claim is the first to get through."""
        if self._is_away:
            return None if self._reached_at is None else (now - self._reached_at, 0.0)
        if self._last is None or now - self._last[1] > KEPT_S:
            return None
        return now - self._last[0], now - self._last[1]
