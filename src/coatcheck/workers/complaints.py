"""Says in the log that a service cannot be reached: once a minute for each provider, since a wrong address fails the same way each time."""

import logging

from coatcheck.seams import Clock

logger = logging.getLogger(__name__)

EVERY_S = 60.0


class Complaints:
    """One worker's. `complaints.about("genace", "refused")` where a POST was not sent or a look found nobody."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said_at: dict[str, float] = {}

    def about(self, provider: str, cause: str) -> None:
        """Warn, unless it was said within the last minute."""
        now = self._clock.boottime()
        said_at = self._said_at.get(provider)
        if said_at is None or now - said_at >= EVERY_S:
            self._said_at[provider] = now
            logger.warning("service unreachable", extra={"provider": provider, "cause": cause})
