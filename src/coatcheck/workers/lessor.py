"""One claimer per process: it takes what is due in big batches, within the room that each role has, and loads the operations with it.

Idle, it asks once a second at most; a notification, an own save that made something due, or a freed place wakes it earlier.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coatcheck.core.actions import Action
from coatcheck.core.operation import Operation, OperationId
from coatcheck.queue.leases import Leases, Message, Wanted
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.operations import load
from coatcheck.workers.desk import Work

POLL_S = 1.0
"""How long an idle worker waits between two looks at the outbox."""
DOUBTS = 100
"""Ended dispatches taken at a time."""
DOUBT_LEASE_S = 30.0
_GATHER_S = 0.02
_WORTH_CLAIMING = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many actions of a kind may be in hand at once, for how long each is leased, and for which providers (name to account)."""

    places: int
    lease_s: float
    accounts: Mapping[str, str]


class Lessor:
    """Claims for one worker. `in_hand` counts the actions that run."""

    def __init__(self, leases: Leases, database: Database, capacities: Mapping[Action, Capacity], seams: Seams) -> None:
        self._leases = leases
        self._database = database
        self._capacities = capacities
        self._seams = seams
        self._woken = asyncio.Event()
        self._due_at: float | None = None
        self.in_hand: Counter[Action] = Counter()

    def wake(self, delay_s: float = 0.0) -> None:
        """Something becomes due in `delay_s` seconds."""
        due_at = self._seams.clock.boottime() + delay_s
        if self._due_at is None or due_at < self._due_at:
            self._due_at = due_at
        if delay_s <= 0:
            self._woken.set()

    def done(self, action: Action) -> None:
        """A place is free again."""
        self.in_hand[action] -= 1
        self._woken.set()

    async def claim(self) -> list[Work]:
        """Lease what is due and there is room for, with the operations as they stand."""
        self._woken.clear()
        self._due_at = None
        messages = await self._leases.claim(self._wanted(), doubts=DOUBTS, doubt_lease_s=DOUBT_LEASE_S)
        operations = await self._loaded(messages)
        found = [
            Work(message=message, operation=operations[message.operation_id])
            for message in messages
            if message.operation_id in operations
        ]
        for work in found:
            self.in_hand[work.message.action] += 1
        return found

    async def _loaded(self, messages: Sequence[Message]) -> Mapping[OperationId, Operation]:
        return await load(self._database, list({message.operation_id for message in messages})) if messages else {}

    async def wait(self) -> None:
        """Until something may be due: woken, a known instant, or the poll interval. A little longer when room is scarce."""
        now = self._seams.clock.boottime()
        pause_s = POLL_S * self._seams.jitter.between(0.9, 1.1)
        if self._due_at is not None:
            pause_s = min(pause_s, max(0.0, self._due_at - now))
        try:
            async with asyncio.timeout(pause_s):
                await self._woken.wait()
        except TimeoutError:
            return
        if self._is_crowded():
            await self._seams.sleep(_GATHER_S)

    def _is_crowded(self) -> bool:
        """Whether so little room is free that gathering freed places is worth more than claiming at once."""
        return any(
            0 < capacity.places - self.in_hand[action] < capacity.places * _WORTH_CLAIMING
            for action, capacity in self._capacities.items()
        )

    def _wanted(self) -> list[Wanted]:
        wanted = []
        for action, capacity in self._capacities.items():
            free = capacity.places - self.in_hand[action]
            share = max(1, free // len(capacity.accounts)) if capacity.accounts else 0
            for provider, account in capacity.accounts.items():
                room = min(share, free)
                free -= room
                if room > 0:
                    wanted.append(
                        Wanted(action=action, provider=provider, account=account, room=room, lease_s=capacity.lease_s)
                    )
        return wanted
