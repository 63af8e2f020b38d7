"""Keeps leases whose action legitimately lasts longer. A lease that could not be kept is counted, and not kept any more.

Its action ends by itself: every write that it could still make is guarded by what is true then.
"""

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import psycopg

from coatcheck.config.sizing import RENEW_EVERY_S
from coatcheck.core.actions import Action
from coatcheck.core.operation import OperationId
from coatcheck.errors import CoatcheckError
from coatcheck.queue.leases import Leases, Message
from coatcheck.seams import Point, Seams
from coatcheck.workers.tally import Tally

logger = logging.getLogger(__name__)

TICK_S = 1.0
_ANSWER_S = 5.0
"""How long anybody waits to hear whether a lease is still ours: a commit waits for its standby without any limit."""
_LATE_SHARE = 2 / 3
"""After which part of its lease a look, which fits in its lease, lags so much that it is renewed."""

Slot = tuple[OperationId, int]


@dataclass(slots=True)
class _Held:
    message: Message
    kept_at: float


class Renewer:
    """Renews what `hold` was called for until `drop`."""

    def __init__(self, leases: Leases, seams: Seams, tally: Tally) -> None:
        self._leases = leases
        self._seams = seams
        self._tally = tally
        self._held: dict[Slot, _Held] = {}

    def hold(self, message: Message) -> None:
        """The action on this message began."""
        self._held[message.slot] = _Held(message, self._seams.clock.boottime())

    def drop(self, message: Message) -> None:
        """The action on this message ended."""
        held = self._held.get(message.slot)
        if held is not None and held.message.lease_token == message.lease_token:
            del self._held[message.slot]

    async def renew(self, message: Message) -> bool:
        """Keep one lease now; False when it is not ours any more, or nobody says so in time."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                return message.slot in await self._renewed([message])
        except TimeoutError:
            return False

    async def run(self) -> None:
        """Renew in batches until cancelled."""
        while True:
            await self._seams.sleep(TICK_S)
            try:
                await self._tick()
            except (psycopg.Error, CoatcheckError) as error:
                logger.warning("renewal failed", extra={"error": type(error).__name__})

    async def _tick(self) -> None:
        now = self._seams.clock.boottime()
        late = [held for held in self._held.values() if now - held.kept_at >= _kept_for_s(held.message)]
        if not late:
            return
        kept = await self._renewed([held.message for held in late])
        for held in late:
            slot = held.message.slot
            if slot in kept:
                held.kept_at = now
            elif slot in self._held:
                # the action saves by guarded writes only; here it is known that its authority ended
                self._tally.lease_renewal_failures += 1
                del self._held[slot]

    async def _renewed(self, messages: Sequence[Message]) -> set[Slot]:
        self._seams.faults.reached(Point.L1_RENEWAL_SENT)
        kept = await self._leases.renew(messages)
        self._seams.faults.reached(Point.L2_RENEWED)
        return kept


def _kept_for_s(message: Message) -> float:
    """For how long a lease is left alone.

    A delivery lasts as long as its output is large, so its lease is renewed steadily. A dispatch's never is: its mark takes a lease of its
    own that covers the whole POST, and without one it must not send.
    """
    match message.action:
        case Action.DELIVER:
            return RENEW_EVERY_S
        case Action.OBSERVE:
            return message.lease_s * _LATE_SHARE
        case Action.DISPATCH | Action.RECONCILE:
            return math.inf
        case _:
            assert_never(message.action)


async def settled(task: asyncio.Task[None]) -> None:
    """Cancel a background task and wait for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
