"""How every decision is made: load, ask the table of phases, save under the revision that was read.

Somebody else's decision in between is never overwritten: it is told. A commit that nobody saw is looked for by its content.
"""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NoReturn

import psycopg

from coatcheck.app.reconciling.words import revision_of
from coatcheck.app.story.wording import quoted
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text, parse_operation_id
from coatcheck.core.machine import advance
from coatcheck.core.steps import DecideStep, Refusal, Refused
from coatcheck.errors import (
    CommitUnknown,
    Failed,
    NotFound,
    NotQuiescent,
    RemoteJobOwned,
    StaleRevision,
    StillLooking,
    Unavailable,
    WrongPhase,
)
from coatcheck.seams import Seams
from coatcheck.store.db import Database, Trouble, trouble
from coatcheck.store.door import DecideSave, Door, Saved, Status
from coatcheck.store.doubts import Doubt, Entry, load_doubt
from coatcheck.store.failures import meaning
from coatcheck.store.resolution import Resolution

_PAUSES_S: Final = (0.1, 0.5, 1.0, 2.0, 4.0)
"""Between the looks for a decision whose commit was not seen."""
_AGAIN: Final = "`coatcheck reconcile show {name}` shows it as it is now; decide again if that is still needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """One connection to read with, which reads again after a cut, and one to write with, which does not."""

    reading: Database
    writing: Database
    seams: Seams

    async def load(self, operation_id: object, revision: int | None) -> Doubt:
        """The operation as it stands. Raises `NotFound`, and `StaleRevision` where it is not the one that was looked at."""
        known = parse_operation_id(operation_id) if isinstance(operation_id, str) else None
        doubt = None if known is None else await load_doubt(self.reading, known)
        if doubt is None:
            raise NotFound("expected the id of an operation, got one that names none here", next="check the id")
        if revision_of(revision) not in (None, doubt.operation.revision):
            raise stale(doubt, f"at revision {revision}")
        return doubt

    def step(self, doubt: Doubt, event: ev.Event, revision: int | None) -> DecideStep:
        """What the decision means now. Raises `NotQuiescent`, `StillLooking`, `WrongPhase`, or `StaleRevision` where it was decided already."""
        found = advance(doubt.operation, event, doubt.operation.read_at)
        if isinstance(found, DecideStep):
            return found
        if isinstance(found, Refusal):
            refuse(doubt, found, was_seen=revision is not None)
        raise Failed(f"{event.kind} is no decision")

    async def save(self, doubt: Doubt, step: DecideStep) -> int:
        """Save a decision; the answer is the new revision. Raises `StaleRevision` with the newer state, `RemoteJobOwned`, `CommitUnknown`."""
        for _ in _PAUSES_S:
            saved = await self._written(step)
            match saved.status:
                case Status.APPLIED if saved.revision is not None:
                    return saved.revision
                case Status.OWNED:
                    raise RemoteJobOwned(f"expected a job that nobody has, got {quoted(step.remote_job_id or '')}")
                case _:
                    newer = await load_doubt(self.reading, step.operation_id)
                    if newer is None or newer.operation.revision != step.revision:
                        raise stale(newer or doubt, f"at revision {step.revision}")
                    # another operation's claim to the same remote job was being committed: once more
        raise Unavailable("the remote job is being claimed by others; nothing changed", next="try again")

    async def _written(self, step: DecideStep) -> Saved:
        door, traces = Door(self.writing, "operator"), Resolution(self.writing, "operator")
        save = DecideSave(step=step)
        was_sent = False
        for pause_s in _PAUSES_S:
            try:
                found = (await traces.decisions([save]))[0] if was_sent else None
                return found or (await door.decide([save]))[0]
            except Unavailable:
                if not was_sent:
                    raise
            except CommitUnknown:
                was_sent = True
            except psycopg.Error as error:
                if trouble(error) in (Trouble.BAD_ROW, Trouble.DEFECT):
                    raise meaning(error) from None
                was_sent = was_sent or trouble(error) is Trouble.UNKNOWN
            await self.seams.sleep(pause_s)
        raise not_seen(operation_text(step.operation_id), was_sent=was_sent)


def not_seen(name: str, *, was_sent: bool) -> Failed | Unavailable:
    """What is said of a decision whose commit was never seen."""
    if was_sent:
        message = f"whether the decision about {name} was saved could not be seen"
        return CommitUnknown(message, next=f"`coatcheck operations show {name}` shows it once the database is back")
    return Unavailable("the database was busy with others all the time; nothing changed", next="try again")


def stale(doubt: Doubt, expected: str) -> StaleRevision:
    """The answer to whoever decides about what is no longer so: the newer state, and who brought it about."""
    operation = doubt.operation
    name = operation_text(operation.operation_id)
    got = f"{operation.phase} at revision {operation.revision}{_told(doubt.newest)}"
    return StaleRevision(f"expected {name} {expected}, got {got}", next=_AGAIN.format(name=name))


def _told(entry: Entry | None) -> str:
    return "" if entry is None else f" ({entry.event} by {quoted(entry.actor)} at {iso(entry.at)})"


def refuse(doubt: Doubt, refusal: Refusal, *, was_seen: bool) -> NoReturn:
    """Raise what a refusal of the table means to a person. `was_seen`: they named the present revision, so they know what it is."""
    operation = doubt.operation
    name = operation_text(operation.operation_id)
    show = f"`coatcheck operations show {name}` tells how it stands"
    if refusal.code is Refused.NOT_QUIESCENT and doubt.quiescent_at is not None:
        raise _too_early(doubt, doubt.quiescent_at, name)
    if doubt.departure is not None and not was_seen:
        told = replace(doubt, newest=doubt.departure)
        raise stale(told, "still to be decided")
    if refusal.code is Refused.STILL_LOOKING:
        raise StillLooking(f"{name}: {refusal.detail}", next=show)
    raise WrongPhase(f"{name}: {refusal.detail}", next=show)


def _too_early(doubt: Doubt, quiescent_at: datetime, name: str) -> NotQuiescent:
    left_s = math.ceil((quiescent_at - doubt.operation.read_at).total_seconds())
    return NotQuiescent(
        f"expected {name} to be quiescent, got a dispatch of which something can still arrive until {iso(quiescent_at)}, in {left_s} s",
        next=f"decide from {iso(quiescent_at)} on; a job that the service has can be adopted at once",
    )


def iso(at: datetime) -> str:
    """An instant as programs read it, in UTC to the second, never earlier than it is."""
    whole = at.astimezone(UTC)
    if whole.microsecond:
        whole = datetime.fromtimestamp(math.ceil(whole.timestamp()), UTC)
    return whole.isoformat().replace("+00:00", "Z")
