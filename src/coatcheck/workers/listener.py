"""Hears notifications: a hint to look earlier, never the reason why a message is found. Polling covers its absence."""

import logging
from collections.abc import Callable

import psycopg

from coatcheck.errors import CoatcheckError
from coatcheck.queue.leases import Leases
from coatcheck.seams import Seams
from coatcheck.store.db import connect

logger = logging.getLogger(__name__)

SLEEP_S = 10.0
"""For how long enqueue is told that a worker sleeps; renewed while it does."""
_RETRY_S = (2.0, 5.0)


async def listen(url: str, wake: Callable[[], None], seams: Seams) -> None:
    """LISTEN until cancelled; a broken connection is opened anew."""
    while True:
        try:
            connection = await connect(url, "listener")
            async with connection:
                await connection.execute("listen coatcheck")
                async for _ in connection.notifies():
                    wake()
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("listener lost", extra={"error": type(error).__name__})
        await seams.sleep(seams.jitter.between(*_RETRY_S))


class Bedtime:
    """Tells enqueue that a worker sleeps, so that a busy system pays nothing for notifications."""

    def __init__(self, leases: Leases, seams: Seams) -> None:
        self._leases = leases
        self._seams = seams
        self._until = 0.0

    async def announce(self) -> bool:
        """Say so, unless it was said lately. True when it was said just now: then one more look at the outbox closes the gap."""
        now = self._seams.clock.boottime()
        if now < self._until - SLEEP_S / 2:
            return False
        await self._leases.announce_sleep(SLEEP_S)
        self._until = now + SLEEP_S
        return True
