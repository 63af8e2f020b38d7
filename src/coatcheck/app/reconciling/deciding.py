"""How every decision is made: load, ask the table of phases, save under the revision that was read.

Somebody else's decision in between is never overwritten: it is told. A commit that nobody saw is looked for by its content.
"""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NoReturn

from coatcheck.app.reconciling.trying import PAUSES_S, until_seen
from coatcheck.app.reconciling.words import revision_of
from coatcheck.app.story.wording import quoted
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text, parse_operation_id
from coatcheck.core.machine import advance
from coatcheck.core.steps import DecideStep, Refusal, Refused, Settlement
from coatcheck.errors import (
    Failed,
    NotFound,
    NotQuiescent,
    RemoteJobOwned,
    StaleRevision,
    StillLooking,
    Unavailable,
    WrongPhase,
)
from coatcheck.seams import Point, Seams
from coatcheck.store.db import Database
from coatcheck.store.door import DecideSave, Door, Saved, Status
from coatcheck.store.doubts import Entry, Standing, load_doubt
from coatcheck.store.resolution import Traces

_AGAIN: Final = "`coatcheck reconcile show {name}` shows it as it is now; decide again if that is still needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """One connection to read with, which reads again after a cut, and one to write with, which does not."""

    reading: Database
    writing: Database
    seams: Seams

    async def load(self, operation_id: object, revision: int | None, *, tenant_id: str | None = None) -> Standing:
        """The operation as it stands. Raises `NotFound`, and `StaleRevision` where it is not the one that was looked at.

        With `tenant_id` another tenant's operation is an unknown one.
        """
        known = parse_operation_id(operation_id) if isinstance(operation_id, str) else None
        standing = None if known is None else await load_doubt(self.reading, known, tenant_id)
        if standing is None:
            raise NotFound("expected the id of an operation, got one that names none here", next="check the id")
        if revision_of(revision) not in (None, standing.operation.revision):
            raise stale(standing, f"at revision {revision}")
        self.seams.faults.reached(Point.C1_AUTHORISED)
        return standing

    def step(self, standing: Standing, event: ev.Event, revision: int | None) -> DecideStep:
        """What the decision means now. Raises `NotQuiescent`, `StillLooking`, `WrongPhase`, or `StaleRevision` where it was decided already."""
        found = advance(standing.operation, event, standing.operation.read_at)
        if isinstance(found, DecideStep):
            return found
        if isinstance(found, Refusal):
            refuse(standing, found, was_seen=revision is not None)
        raise Failed(f"{event.kind} is no decision")

    async def save(self, standing: Standing, step: DecideStep, *, spends: bool = False) -> Saved:
        """Save a decision; the answer has the new revision, and the money that was moved. `spends`: that of the present dispatch is spent by it.

        Raises `StaleRevision` with the newer state, `RemoteJobOwned`, `CommitUnknown`.
        """
        for _ in PAUSES_S:
            saved = await self._written(standing, step, spends=spends)
            match saved.status:
                case Status.APPLIED:
                    self.seams.faults.reached(Point.C3_APPLIED)
                    return saved
                case Status.OWNED:
                    raise RemoteJobOwned(f"expected a job that nobody has, got {quoted(step.remote_job_id or '')}")
                case _:
                    newer = await load_doubt(self.reading, step.operation_id)
                    if newer is None or newer.operation.revision != step.revision:
                        raise stale(newer or standing, f"at revision {step.revision}")
                    # another operation's claim to the same remote job was being committed: once more
        raise Unavailable("the remote job is being claimed by others; nothing changed", next="try again")

    async def _written(self, standing: Standing, step: DecideStep, *, spends: bool) -> Saved:
        door, traces = Door(self.writing, "operator"), Traces(self.writing, "operator")
        save, name = DecideSave(step=step), operation_text(step.operation_id)

        async def attempt(was_sent: bool) -> Saved:  # noqa: FBT001 - as `until_seen` calls it
            self.seams.faults.reached(Point.C2_COMMAND_COMMIT_SENT)
            found = (await traces.decisions([save]))[0] if was_sent else None
            return _told_again(standing, step, found, spends=spends) if found else (await door.decide([save]))[0]

        return await until_seen(attempt, seams=self.seams, name=name, look=f"coatcheck operations show {name}")


def _told_again(standing: Standing, step: DecideStep, found: Saved, *, spends: bool) -> Saved:
    """A decision that is there, with the money that it moved: traces do not tell that, but the revision that was read is the one it followed."""
    spent = standing.held if spends or step.settles is Settlement.SPENT else None
    return replace(found, spent=spent, released=standing.held if step.settles is Settlement.FREE else None)


def stale(standing: Standing, expected: str) -> StaleRevision:
    """The answer to whoever decides about what is no longer so: the newer state, and who brought it about."""
    operation = standing.operation
    name = operation_text(operation.operation_id)
    got = f"{operation.phase} at revision {operation.revision}{_told(standing.newest)}"
    return StaleRevision(f"expected {name} {expected}, got {got}", next=_AGAIN.format(name=name))


def _told(entry: Entry | None) -> str:
    return "" if entry is None else f" ({entry.event} by {quoted(entry.actor)} at {iso(entry.at)})"


def refuse(standing: Standing, refusal: Refusal, *, was_seen: bool) -> NoReturn:
    """Raise what a refusal of the table means to a person. `was_seen`: they named the present revision, so they know what it is."""
    operation = standing.operation
    name = operation_text(operation.operation_id)
    show = f"`coatcheck operations show {name}` tells how it stands"
    if refusal.code is Refused.NOT_QUIESCENT and standing.quiescent_at is not None:
        raise _too_early(standing, standing.quiescent_at, name)
    if standing.departure is not None and not was_seen:
        told = replace(standing, newest=standing.departure)
        raise stale(told, "still to be decided")
    if refusal.code is Refused.STILL_LOOKING:
        raise StillLooking(f"{name}: {refusal.detail}", next=show)
    raise WrongPhase(f"{name}: {refusal.detail}", next=show)


def unrecorded(standing: Standing) -> Failed:
    """What is said of a decision that rests on a dispatch whose row is gone."""
    name = operation_text(standing.operation.operation_id)
    return Failed(f"expected the dispatch of {name}, got none recorded", next="run `coatcheck audit`")


def retired(standing: Standing) -> WrongPhase:
    """What is said to whoever would send again what retention left nothing of."""
    name = operation_text(standing.operation.operation_id)
    return WrongPhase(
        f"expected the specification of {name}, got none: retention removed it, so there is nothing to send",
        next="enqueue it anew, under another key",
    )


def _too_early(standing: Standing, quiescent_at: datetime, name: str) -> NotQuiescent:
    left_s = math.ceil((quiescent_at - standing.operation.read_at).total_seconds())
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
