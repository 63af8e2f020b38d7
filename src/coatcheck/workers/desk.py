"""What every handler works with: the doors for writes and reads, each batching by itself, and the worker's own counts.

The committers are apart so that neither a slow batch of looks nor a crowd of marks delays a paid id, and no backlog's ends the next mark.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from coatcheck.core.actions import Aim, Look, ParkReason, WaitReason
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import Operation, OperationId
from coatcheck.core.steps import DecideStep, Incident, Refusal, Step
from coatcheck.queue.leases import Acknowledge, Message, Release, SetAside
from coatcheck.seams import Point, Seams
from coatcheck.store.committer import Committer
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, MarkSave, Save, Saved, SnapshotSave, Status
from coatcheck.store.incidents import Note
from coatcheck.store.operations import Delivery
from coatcheck.store.requests import DeliveriesOf, OperationOf
from coatcheck.workers import alarms
from coatcheck.workers.accounts import Accounts
from coatcheck.workers.complaints import Complaints
from coatcheck.workers.spooling import Spooling
from coatcheck.workers.tally import Tally


@frozen
class Work:
    """A leased message with what it is about as that stood when its claim began or later.

    A dispatch has its text, a delivery its output, a reconciliation the instant after which nothing of its dispatch can arrive.
    """

    message: Message
    operation: Operation
    specification_text: str | None = field(default=None, repr=False)
    output: Delivery | None = None
    quiescent_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Desk:
    """One worker's tools. `marks` saves what begins a POST, `money` its end and decisions, `looks` everything else; `reads` loads in batches."""

    worker: str
    seams: Seams
    marks: Committer
    money: Committer
    looks: Committer
    reads: Committer
    wake: Callable[[float], None]
    renew: Callable[[Message], Awaitable[bool]]
    spooling: Spooling | None = None
    """Keeps ends of POSTs on the disk while the database is away; None where only memory does."""
    tally: Tally = field(default_factory=Tally)
    trust: Accounts = field(default_factory=Accounts)
    complaints: Complaints = field(init=False)
    failing: set[str] = field(default_factory=set)
    """Accounts of which a look failed here and none was answered since."""
    draining: bool = False
    """Whether the worker was told to end: from then on nothing is marked any more."""

    def __post_init__(self) -> None:
        """Complaints are spaced by the desk's own clock."""
        self.complaints = Complaints(self.seams.clock)

    def drain(self) -> None:
        """The worker ends: nothing is marked any more, and only the ends of POSTs that no disk has wait for a database that is away."""
        self.draining = True
        if self.spooling is not None:
            self.spooling.leave()
        for committer in self._committers:
            committer.drain()

    def stop(self) -> None:
        """The worker ends at once: nothing waits for the database any more."""
        self.draining = True
        for committer in self._committers:
            committer.stop()

    async def close(self) -> None:
        """Write what waits, then end. What was left to the next worker holds nobody up: a commit may wait for its standby without limit."""
        if self.spooling is not None and self.spooling.has_left:
            self.stop()
        for committer in self._committers:
            await committer.close()

    @property
    def _committers(self) -> tuple[Committer, ...]:
        return self.marks, self.money, self.looks, self.reads

    async def save(self, save: Save) -> Saved:
        """Save a step through the one door. A stale one is counted by its kind."""
        saved: Saved = await self._committer_of(save).save(save, lasting=isinstance(save, ConcludeSave))
        if saved.status in (Status.STALE, Status.EVIDENCE):
            self.tally.stale[_cause(save)] += 1
        else:
            alarms.about(save, saved)
            for delay_s in _made_due(save):
                self.wake(delay_s)
        return saved

    def _committer_of(self, save: Save) -> Committer:
        match save:
            case MarkSave():
                return self.marks
            case ConcludeSave() | DecideSave():
                return self.money
            case SnapshotSave() | DeliverSave():
                return self.looks
            case _:
                assert_never(save)

    async def decide(self, step: Step | Refusal) -> Saved | None:
        """Save a decision; None when the table refused it."""
        return await self.save(DecideSave(step=step)) if isinstance(step, DecideStep) else None

    async def release(
        self,
        message: Message,
        delay_s: float,
        reason: WaitReason | None = None,
        *,
        forgives: bool = True,
        error: str | None = None,
    ) -> None:
        """Give a message back. A lease that was lost meanwhile is counted; its new holder goes on. `error` is what ended it badly."""
        await self._end(Release(message=message, delay_s=delay_s, reason=reason, forgives=forgives, error=error))
        self.wake(delay_s)

    async def acknowledge(self, message: Message) -> None:
        """End a lane that has nothing left to do."""
        await self._end(Acknowledge(message=message))

    async def park(self, message: Message, reason: ParkReason) -> None:
        """Set a message aside for a person."""
        if await self._end(SetAside(message=message, reason=reason)):
            alarms.parked(message.operation_id, message.lane, reason)

    async def note(self, operation_id: OperationId, incident: Incident) -> None:
        """Write down a protocol fault."""
        await self.looks.save(Note(operation_id=operation_id, incident=incident))

    async def operation(self, operation_id: OperationId, *, lasting: bool = False) -> Operation | None:
        """The operation as it stands now; `lasting` for whoever still has the end of a POST to save."""
        found: Operation | None = await self.reads.save(OperationOf(operation_id=operation_id), lasting=lasting)
        return found

    async def deliveries(self, operation_id: OperationId) -> tuple[Delivery, ...]:
        """The operation's outputs."""
        found: tuple[Delivery, ...] = await self.reads.save(DeliveriesOf(operation_id=operation_id))
        return found

    async def still_holds(self, message: Message) -> bool:
        """Whether the lease is still ours, asked of the database."""
        return await self.renew(message)

    async def _end(self, end: Release | Acknowledge | SetAside) -> bool:
        """Whether the lease was still ours to end."""
        self.seams.faults.reached(Point.L3_END_SENT)
        is_kept = bool(await self.looks.save(end))
        if not is_kept:
            self.tally.stale["lease"] += 1
        self.seams.faults.reached(Point.L4_ENDED)
        return is_kept


def _made_due(save: Save) -> set[float]:
    """After how many seconds the lanes of a step are due; a mark's own lane is leased already."""
    if isinstance(save, MarkSave):
        return set()
    return {
        change.delay_s if isinstance(change, Aim) else 0.0
        for change in save.step.lanes
        if isinstance(change, Aim | Look)
    }


def _cause(save: Save) -> str:
    match save:
        case MarkSave():
            return "mark"
        case ConcludeSave():
            return "conclude"
        case SnapshotSave():
            return "snapshot"
        case DeliverSave():
            return "deliver"
        case DecideSave():
            return "decide"
