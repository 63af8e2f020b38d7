"""Looks at remote jobs: GETs only, repeatable at will, and what they bring is saved under revision and id. Nothing here can create.

A look that brings nothing new touches the lane and not the operation. A stale save is never retried with the old snapshot: look again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from coatcheck.config import ProviderSettings
from coatcheck.core import events as ev
from coatcheck.core.actions import ParkReason, WaitReason
from coatcheck.core.delays import backoff_s, look_delay_s
from coatcheck.core.machine import advance
from coatcheck.core.operation import DeliveryState, Operation, Phase
from coatcheck.core.steps import (
    Boundary,
    ConcludeStep,
    DecideStep,
    DeliverStep,
    Incident,
    MarkStep,
    Refusal,
    Refused,
    SnapshotStep,
)
from coatcheck.provider.looking import look_once
from coatcheck.provider.port import Absent, Denied, Getter, Look, LookPort, Nonsense, Seen, StillWaiting, Transient
from coatcheck.seams import Point
from coatcheck.store.door import DecideSave, Saved, SnapshotSave, Status
from coatcheck.workers.cancelling import Cancelling, answer_s, pass_on
from coatcheck.workers.desk import Desk, Work
from coatcheck.workers.failing import report, spare

ACCOUNTING_FOR = timedelta(hours=24)
"""How long after a final state the service's accounting is waited for."""
_ACCOUNTING_DELAY_S = 300.0
_HELD_SHARE = 0.5
_LEARNS_NOTHING = frozenset({WaitReason.TRANSIENT, WaitReason.DENIED, WaitReason.ACTIVE})
"""A look that ends so says nothing about an output that is waited for: the minute goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What observing at one configured provider takes."""

    port: LookPort
    settings: ProviderSettings
    gets: Getter
    cancelling: Cancelling | None = None
    """How the service is told that a job is not wanted any more, where it can be."""


class Observer:
    """Handles `observe` messages."""

    def __init__(self, desk: Desk, providers: Mapping[str, Watching]) -> None:
        self._desk = desk
        self._providers = providers

    async def handle(self, work: Work) -> None:
        """Look once, save what changed, and say when to look again."""
        self._desk.seams.faults.reached(Point.O2_LOADED)
        watching = self._providers[work.message.provider]
        if not await self._is_due(work) or await self._passed_on(work, watching):
            await spare(self._desk, work, watching.settings.account)
            return
        began = self._desk.seams.clock.boottime()
        look = await self._look(work, watching)
        self._desk.seams.faults.reached(Point.O5_VALIDATED)
        held_s = self._desk.seams.clock.boottime() - began
        await report(self._desk, work, watching.settings.account, look)
        await self._decide(work, watching, look, held_s)
        self._desk.seams.faults.reached(Point.O8_ACKNOWLEDGED)

    async def surprised(self, work: Work) -> bool:  # noqa: ARG002 - the port's form
        """Nothing here is beyond repeating."""
        return False

    async def _is_due(self, work: Work) -> bool:
        """Check what the message refers to, decided from the operation as it stands."""
        operation, message, desk = work.operation, work.message, self._desk
        if message.expected_revision < operation.revision:
            desk.tally.stale["message"] += 1
        if operation.phase not in (Phase.ACCEPTED, Phase.SUBMISSION_FAILED):
            await self._leave(work)
            return False
        if message.expected_remote_job_id not in (None, operation.remote_job_id):
            detail = "an observe message named another remote job than its operation"
            await desk.note(
                operation.operation_id, Incident(kind="message_job_differs", boundary=Boundary.OURS, detail=detail)
            )
        if operation.final_at is not None and not self._owes_look(work):
            await desk.acknowledge(message)
            return False
        if (
            operation.observe_by_at is not None
            and operation.observe_by_at <= operation.read_at
            and not operation.is_final
        ):
            await desk.decide(advance(operation, ev.Stalled(), operation.read_at))
            return False
        return True

    async def _leave(self, work: Work) -> None:
        if work.operation.phase is Phase.UNCERTAIN:
            await self._desk.park(work.message, ParkReason.UNCERTAIN)
        elif work.operation.phase in (Phase.PREPARED, Phase.DISPATCHING):
            await self._desk.release(work.message, 1.0)
        else:
            await self._desk.acknowledge(work.message)

    def _owes_look(self, work: Work) -> bool:
        """On a final operation a look is owed for its accounting, a day long, or for a fresh source."""
        operation, reason = work.operation, work.message.waited.reason
        if reason == WaitReason.ACCOUNTING and operation.final_at is not None:
            return operation.read_at - operation.final_at < ACCOUNTING_FOR
        return reason == WaitReason.SOURCE_EXPIRED and operation.delivery_state is DeliveryState.PENDING

    async def _passed_on(self, work: Work, watching: Watching) -> bool:
        """Whether the service was told that the job is not wanted any more and answered: the next look is aimed already."""
        if watching.cancelling is None or not work.operation.owes_cancel:
            return False
        return await pass_on(self._desk, work, watching.cancelling)

    async def _look(self, work: Work, watching: Watching) -> Look:
        """GET the remote job, holding the line for the wait window unless the render is final."""
        operation, settings = work.operation, watching.settings
        if operation.remote_job_id is None:  # the schema refuses this in a phase that is observed
            return Transient(cause="no_remote_job")
        told = watching.cancelling is not None and operation.owes_cancel
        # a suspect keeps everything else waiting, so it does not hold the line; nor does a look in whose lease the service was told something;
        # and where looks failed lately, perhaps because the line was held, an answer now is worth more than news
        hurries = work.message.is_suspect or work.message.is_tried
        at_once = operation.is_final or hurries or told or not settings.wait_param
        wait_s = 0.0 if at_once else settings.wait_s
        return await look_once(
            watching.port,
            watching.gets,
            operation.remote_job_id,
            timeout_s=settings.observe_timeout_s - (answer_s(settings) if told else 0.0),
            clock=self._desk.seams.clock,
            wait_s=wait_s,
        )

    async def _decide(self, work: Work, watching: Watching, look: Look, held_s: float) -> None:
        """Say what the look means and save it, or release the message until the next one."""
        settings = watching.settings
        match look:
            case Seen():
                await self._seen(work, watching, look, held_s)
            case StillWaiting():
                await self._again(work, WaitReason.ACTIVE, max(self._soon_s(settings), look.retry_after_s or 0))
            case Absent():
                grace_s = settings.not_found_grace_s
                delay_s = min(
                    self._backed_off_s(work, WaitReason.NOT_FOUND, settings), max(settings.look_min_s, grace_s / 6)
                )
                event = ev.NotFound(grace_s=grace_s, waited=work.message.waited, delay_s=delay_s)
                await self._save(work, event, WaitReason.NOT_FOUND, delay_s)
            case Transient():
                self._desk.complaints.about(work.message.provider, look.cause)
                delay_s = self._backed_off_s(work, WaitReason.TRANSIENT, settings)
                await self._again(work, WaitReason.TRANSIENT, max(delay_s, look.retry_after_s or 0))
            case Denied():
                detail = f"a look was answered {look.status}: the credential may not read this job"
                await self._desk.note(
                    work.operation.operation_id, Incident(kind="look_denied", boundary=Boundary.THEIRS, detail=detail)
                )
                await self._again(work, WaitReason.DENIED, self._backed_off_s(work, WaitReason.DENIED, settings))
            case Nonsense():
                incident = Incident(kind=look.kind, boundary=Boundary.THEIRS, detail=look.detail)
                await self._desk.note(work.operation.operation_id, incident)
                await self._again(work, WaitReason.NONSENSE, self._backed_off_s(work, WaitReason.NONSENSE, settings))

    def _backed_off_s(self, work: Work, reason: WaitReason, settings: ProviderSettings) -> float:
        """Longer with each look in a row that ended for the same reason; never below the service's floor."""
        count = work.message.waited.count if work.message.waited.reason == reason else 0
        return max(settings.look_min_s, backoff_s(count, self._desk.seams.jitter.between(0, 1)))

    async def _seen(self, work: Work, watching: Watching, look: Seen, held_s: float) -> None:
        operation, settings = work.operation, watching.settings
        delay_s = max(self._next_look_s(operation, settings, held_s), look.retry_after_s or 0)
        changed_delay_s = max(self._soon_s(settings), look.retry_after_s or 0)
        if look.snapshot.render_state in (None, operation.render_state) or operation.is_final:
            changed_delay_s = delay_s
        snapshot = replace(
            look.snapshot,
            waited=work.message.waited,
            stored_urls=await self._stored_urls(operation),
            delay_s=_ACCOUNTING_DELAY_S if operation.is_final else changed_delay_s,
        )
        waits = WaitReason.NO_OUTPUT if _lacks_output(snapshot) else WaitReason.ACTIVE
        await self._save(work, snapshot, waits, delay_s)

    def _next_look_s(self, operation: Operation, settings: ProviderSettings, held_s: float) -> float:
        """After a window that was held open the floor is enough; a service that answers at once is asked less and less often."""
        if settings.wait_param and held_s >= settings.wait_s * _HELD_SHARE:
            return self._soon_s(settings)
        since = operation.accepted_at or operation.created_at
        age_s = (operation.read_at - since).total_seconds()
        return look_delay_s(age_s, settings.look_min_s, self._desk.seams.jitter.between(0, 1))

    def _soon_s(self, settings: ProviderSettings) -> float:
        """The service's floor, spread by chance: thousands of windows that opened together are not opened together for ever."""
        return look_delay_s(0.0, settings.look_min_s, self._desk.seams.jitter.between(0, 1))

    async def _stored_urls(self, operation: Operation) -> tuple[tuple[int, str], ...]:
        if not operation.is_final or operation.output_count == 0:
            return ()
        outputs = await self._desk.deliveries(operation.operation_id)
        # a failed output waits for a person: fresh sources start only what is still being tried
        return tuple((output.index, output.source) for output in outputs if output.state == "pending")

    async def _save(self, work: Work, event: ev.Snapshot | ev.NotFound, waits: WaitReason, delay_s: float) -> None:
        """Advance the operation; what changes nothing releases the message."""
        operation, faults = work.operation, self._desk.seams.faults
        step = advance(operation, event, operation.read_at)
        faults.reached(Point.O6_SAVE_COMMIT_SENT)
        match step:
            case SnapshotStep():
                saved = await self._desk.save(SnapshotSave(step=step))
                if step.incident is not None:
                    await self._desk.note(operation.operation_id, step.incident)
            case DecideStep():
                saved = await self._desk.save(DecideSave(step=step))
            case Refusal() | MarkStep() | ConcludeStep() | DeliverStep():
                # no look leads to the other three steps
                await self._unreplace(work, step, waits, delay_s)
                saved = Saved(status=Status.APPLIED)
            case _:
                assert_never(step)
        faults.reached(Point.O7_SAVED)
        if not saved.applied:
            await self._desk.release(work.message, 0.0)

    async def _unreplace(self, work: Work, refusal: object, waits: WaitReason, delay_s: float) -> None:
        regressed = isinstance(refusal, Refusal) and refusal.code is Refused.REGRESSED
        if regressed:
            detail = "a look contradicts the final state that was saved"
            incident = Incident(kind="regressed", boundary=Boundary.THEIRS, detail=detail)
            await self._desk.note(work.operation.operation_id, incident)
        if work.operation.is_final and work.message.waited.reason != WaitReason.ACCOUNTING:
            # the look was for a fresh source and brought none: the delivery counts that as its own failure
            await self._desk.acknowledge(work.message)
            return
        await self._again(work, waits, delay_s)

    async def _again(self, work: Work, reason: WaitReason, delay_s: float) -> None:
        """Look again later. On a final operation the reason for which looks are owed stays."""
        if work.operation.is_final:
            owed = WaitReason(work.message.waited.reason or WaitReason.ACCOUNTING)
            delay_s = max(delay_s, _ACCOUNTING_DELAY_S) if owed is WaitReason.ACCOUNTING else delay_s
            await self._desk.release(work.message, delay_s, owed)
            return
        if work.message.waited.reason == WaitReason.NO_OUTPUT and reason in _LEARNS_NOTHING:
            reason = WaitReason.NO_OUTPUT
        await self._desk.release(work.message, delay_s, reason)


def _lacks_output(snapshot: ev.Snapshot) -> bool:
    return snapshot.render_state == "succeeded" and not snapshot.outputs
