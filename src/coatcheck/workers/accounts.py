"""One POST at a time until an account's credential was seen to work: one bad key must not reject a queue (a 401 rejects what it answers).

A credential is judged at the door, so a denial comes at once: who has waited a moment for an answer that does not come goes on beside it.
A pause ends that trust as a denial does: what was known before it says nothing of the account that a person resumes.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

WAIT_S = 2.0
"""How long a dispatch waits for the one before it to show that the credential works."""
_DENIALS = frozenset({401, 402, 403})


class Accounts:
    """What this process knows of the accounts it dispatches for. `async with accounts.turn("genace"): ...; accounts.answered("genace", 201)`."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._working: set[str] = set()
        self._alone: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def turn(self, account: str) -> AbstractAsyncContextManager[None]:
        """Wait for a turn: at once where the account works, else alone. Whoever waited may find that the account is paused by now."""
        return nullcontext() if self.knows(account) else self._turn_alone(account)

    @asynccontextmanager
    async def _turn_alone(self, account: str) -> AsyncIterator[None]:
        alone = await self._acquired(account)
        if alone and self.knows(account):
            self._alone[account].release()
            alone = False
        try:
            yield
        finally:
            if alone:
                self._alone[account].release()

    def knows(self, account: str) -> bool:
        """Whether an answer showed that the account works, and nothing since says otherwise."""
        return account in self._working

    async def _acquired(self, account: str) -> bool:
        """Whether the turn alone came within the wait."""
        try:
            async with asyncio.timeout(self._wait_s):
                return await self._alone[account].acquire()
        except TimeoutError:
            return False

    def answered(self, account: str, status: int | None) -> None:
        """A POST was answered with this status, or (None) not at all or in no usable way, which says nothing about the account."""
        if status in _DENIALS:
            self._working.discard(account)
        elif status is not None:
            self._working.add(account)

    def paused(self, account: str) -> None:
        """Its dispatches are paused, or were since this process saw it work: the next answer has to show it again."""
        self._working.discard(account)
