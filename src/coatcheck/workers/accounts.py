"""One POST at a time until an account's credential was seen to work: one bad key must not reject a queue (a 401 rejects what it answers)."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_DENIALS = frozenset({401, 402, 403})


class Accounts:
    """What this process knows of the accounts it dispatches for. `async with accounts.turn("genace"): ...; accounts.answered("genace", 201)`."""

    def __init__(self) -> None:
        self._working: set[str] = set()
        self._alone: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def turn(self, account: str) -> AsyncIterator[None]:
        """Wait for a turn: at once where the account works, else alone. Whoever waited may find that the account is paused by now."""
        alone = self._alone[account]
        if account in self._working:
            yield
            return
        await alone.acquire()
        if account in self._working:
            alone.release()
            yield
            return
        try:
            yield
        finally:
            alone.release()

    def answered(self, account: str, status: int | None) -> None:
        """A POST was answered with this status, or (None) not at all, which says nothing about the credential."""
        if status in _DENIALS:
            self._working.discard(account)
        elif status is not None:
            self._working.add(account)
