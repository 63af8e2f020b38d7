"""Where a lease ends in `dispatching`, doubt begins: the only way on is `uncertain` (S3). Needs no adapter, so any worker does it.

What becomes of doubt then, `lookup` may find out; no other service than one that repeats our reference is asked.
"""

from typing import Final

from coatcheck.core import events as ev
from coatcheck.core.actions import ParkReason
from coatcheck.core.machine import advance
from coatcheck.core.operation import Phase
from coatcheck.seams import Point
from coatcheck.workers.desk import Desk, Work
from coatcheck.workers.lookup import Lookup

_BAD_LEASES: Final = 5
"""Consecutive leases of one lookup that may end badly before it is a person's."""


async def conclude_doubt(desk: Desk, work: Work, *, looked_up: bool) -> None:
    """Make it uncertain, unless the lane was aimed anew since: then its sender is alive, or somebody was faster."""
    operation = work.operation
    if not await desk.still_holds(work.message):
        desk.tally.stale["lease"] += 1
        return
    desk.seams.faults.reached(Point.R3_DECISION_COMMIT_SENT)
    await desk.decide(advance(operation, ev.LeaseEnded(looked_up=looked_up), operation.read_at))
    desk.seams.faults.reached(Point.R4_DECIDED)


class Reconciler:
    """Handles `reconcile` messages: dispatches whose lease ended, and uncertain operations that are to be looked up."""

    def __init__(self, desk: Desk, lookup: Lookup) -> None:
        self._desk = desk
        self._lookup = lookup

    async def handle(self, work: Work) -> None:
        """Conclude the doubt, or look it up where that can be; any other operation that is uncertain waits for a person."""
        self._desk.seams.faults.reached(Point.R1_SCANNED)
        covered = self._lookup.covers(work)
        match work.operation.phase:
            case Phase.DISPATCHING:
                await conclude_doubt(self._desk, work, looked_up=covered)
            case Phase.UNCERTAIN if covered and work.message.lease_count <= _BAD_LEASES:
                await self._lookup.handle(work)
            case Phase.UNCERTAIN:
                await self._desk.park(work.message, ParkReason.UNCERTAIN)
            case Phase.REJECTED | Phase.CANCELLED | Phase.ABANDONED:
                await self._desk.acknowledge(work.message)
            case Phase.PREPARED | Phase.ACCEPTED | Phase.SUBMISSION_FAILED:
                # whoever moved the operation on aimed the lane anew; this lease is the older one
                await self._desk.release(work.message, 1.0)

    async def surprised(self, work: Work) -> bool:  # noqa: ARG002 - the port's form
        """Nothing here is beyond repeating."""
        return False
