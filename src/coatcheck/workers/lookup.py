"""Doubt at a service that repeats our reference: it is asked which job does, and exactly one is adopted. GETs only.

Absence is never concluded here: what is not found until nothing can arrive any more is a person's, as is all that is odd.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from coatcheck.config import ProviderSettings
from coatcheck.core import events as ev
from coatcheck.core.actions import ParkReason, WaitReason
from coatcheck.core.delays import backoff_s
from coatcheck.core.machine import advance
from coatcheck.core.operation import ECHOED, DispatchId
from coatcheck.core.steps import Boundary, Incident
from coatcheck.provider.looking import find_once
from coatcheck.provider.port import (
    Ambiguous,
    Candidate,
    Denied,
    Echoed,
    FindPort,
    Found,
    Getter,
    Nonsense,
    Transient,
    Unechoed,
)
from coatcheck.seams import Point
from coatcheck.store.door import Status
from coatcheck.workers.desk import Desk, Work
from coatcheck.workers.failing import report

ANSWER_S: Final = 15.0
"""How long one search may take, well within the lease of a reconcile message."""
SHORTEST_S: Final = 5.0
LONGEST_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What looking up at one configured provider takes."""

    port: FindPort
    settings: ProviderSettings
    gets: Getter


class Lookup:
    """Looks uncertain operations up. `await lookup.handle(work)` where `lookup.covers(work)`."""

    def __init__(self, desk: Desk, providers: Mapping[str, Finding]) -> None:
        self._desk = desk
        self._providers = providers

    def covers(self, work: Work) -> bool:
        """Whether this worker can ask the service, with the credential of the account that the dispatch went to."""
        finding = self._providers.get(work.message.provider)
        return finding is not None and finding.settings.account == work.operation.account

    async def handle(self, work: Work) -> None:
        """Ask once, and adopt, ask again later, or leave it to a person."""
        finding, dispatch_id = self._providers[work.message.provider], work.operation.dispatch_id
        if dispatch_id is None:  # the schema refuses this in a phase that is looked up
            await self._leave(work)
            return
        found = await self._find(finding, dispatch_id)
        self._desk.seams.faults.reached(Point.R2_EVIDENCE_READ)
        # who may not list may well look at jobs, so a denial says nothing here
        if not isinstance(found, Denied):
            await report(self._desk, work, finding.settings.account, found)
        await self._decide(work, finding, found)

    async def _find(self, finding: Finding, dispatch_id: DispatchId) -> Found:
        return await find_once(
            finding.port,
            finding.gets,
            dispatch_id,
            timeout_s=min(ANSWER_S, finding.settings.observe_timeout_s),
            clock=self._desk.seams.clock,
        )

    async def _decide(self, work: Work, finding: Finding, found: Found) -> None:
        """Say what the answer means."""
        match found:
            case Echoed():
                await self._adopt(work, finding, found.candidate)
            case Unechoed() if _is_over(work, finding.settings):
                await self._leave(work)
            case Unechoed():
                await self._again(work)
            case Ambiguous():
                detail = f"{found.count} jobs repeat the reference of one POST"
                await self._leave(work, Incident(kind="reference_repeated", boundary=Boundary.THEIRS, detail=detail))
            case Nonsense():
                await self._leave(work, Incident(kind=found.kind, boundary=Boundary.THEIRS, detail=found.detail))
            case Denied():
                detail = f"a search by reference was answered {found.status}: the credential may not list jobs"
                incident = Incident(kind="look_denied", boundary=Boundary.THEIRS, detail=detail)
                await self._desk.note(work.operation.operation_id, incident)
                await self._again(work)
            case Transient():
                self._desk.complaints.about(work.message.provider, found.cause)
                await self._again(work, found.retry_after_s or 0.0)

    async def _adopt(self, work: Work, finding: Finding, candidate: Candidate) -> None:
        """Save that this is the dispatch's job, unless somebody decided otherwise meanwhile."""
        operation, desk = work.operation, self._desk
        event = ev.Adopt(
            actor=desk.worker,
            reason=ECHOED,
            remote_job_id=candidate.remote_job_id,
            observe_for_s=finding.settings.observe_for_s,
        )
        desk.seams.faults.reached(Point.R3_DECISION_COMMIT_SENT)
        saved = await desk.decide(advance(operation, event, operation.read_at))
        desk.seams.faults.reached(Point.R4_DECIDED)
        if saved is not None and saved.status is Status.OWNED:
            detail = "a search by reference named a remote job of another operation"
            await self._leave(work, Incident(kind="remote_id_owned", boundary=Boundary.THEIRS, detail=detail))
        elif saved is None or not saved.applied:
            await desk.release(work.message, 0.0)

    async def _again(self, work: Work, asked_s: float = 0.0) -> None:
        waited = work.message.waited
        count = waited.count if waited.reason == WaitReason.LOOKUP else 0
        chance = self._desk.seams.jitter.between(0, 1)
        delay_s = max(SHORTEST_S, asked_s, backoff_s(count, chance, first_s=SHORTEST_S, cap_s=LONGEST_S))
        await self._desk.release(work.message, delay_s, WaitReason.LOOKUP)

    async def _leave(self, work: Work, incident: Incident | None = None) -> None:
        """A person decides."""
        if incident is not None:
            await self._desk.note(work.operation.operation_id, incident)
        await self._desk.park(work.message, ParkReason.UNCERTAIN)


def _is_over(work: Work, settings: ProviderSettings) -> bool:
    """Whether, before the service was asked, nothing of the dispatch could arrive any more."""
    margin = timedelta(seconds=settings.margin_s)
    return work.quiescent_at is None or work.operation.read_at >= work.quiescent_at + margin
