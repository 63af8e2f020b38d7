"""A worker is killed in the middle of a POST: not after a while, but when the service's ledger shows one of its POSTs without a reply."""

from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.core.operation import OperationId
from coatcheck.demo.crew import Crew
from coatcheck.sim import Ending, Kind, SimulatedService
from coatcheck.store.db import Database
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One kill. `in_flight` are the dispatches whose end died with the worker; `target`, the one that was waited for, is among them."""

    number: int
    incarnation: str
    target: OperationId
    in_flight: frozenset[OperationId]

    @property
    def hit(self) -> bool:
        """Whether the kill was in the middle of the target's POST; if not, the worker was a moment faster."""
        return self.target in self.in_flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Striker:
    """Watches the ledger and kills. `operations` tells an operation by the hash of its specification, which is the hash of its POST."""

    crew: Crew
    service: SimulatedService
    store: Database
    operations: Mapping[str, OperationId]

    async def strike(self) -> Strike | None:
        """Kill the worker that is in the middle of a stalled POST, if there is one now."""
        stalled = self._stalled()
        for operation_id, incarnation in (await self._open()).items() if stalled else ():
            hand = self.crew.of(incarnation) if operation_id in stalled else None
            if hand is not None and hand.runs:
                self.crew.kill(hand)
                left = frozenset(each for each, worker in (await self._open()).items() if worker == incarnation)
                return Strike(number=hand.number, incarnation=incarnation, target=operation_id, in_flight=left)
        return None

    def _stalled(self) -> set[OperationId]:
        """Operations whose POST has arrived whole and gets no reply."""
        return {
            self.operations[post.body_sha256]
            for post in self.service.ledger.posts
            if post.fault == Kind.STALL and post.reply_end is Ending.PENDING and post.body_sha256 in self.operations
        }

    async def _open(self) -> dict[OperationId, str]:
        rows = await self.store.fetch(statement("demo", "open_dispatches"))
        return {row["operation_id"]: row["worker"] for row in rows}
