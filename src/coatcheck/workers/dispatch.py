"""The only place where money is spent: one POST per mark, after the mark's commit was seen, and never again by itself.

A list of verbs: check, read, mark, send, decide, save. Whatever goes wrong after the mark ends in a recorded outcome or in `uncertain`.
"""

import hashlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from coatcheck.config import ProviderSettings
from coatcheck.core import events as ev
from coatcheck.core.actions import ParkReason
from coatcheck.core.delays import with_delays
from coatcheck.core.evidence import Exchange
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, OperationId, Phase
from coatcheck.core.retry_after import retry_after_s
from coatcheck.core.steps import MarkStep
from coatcheck.provider.port import CreatePort
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Point
from coatcheck.store.door import MarkSave, Saved, Status
from coatcheck.workers.conclusion import Ended, conclude
from coatcheck.workers.desk import Desk, Work
from coatcheck.workers.reconcile import conclude_doubt

_PAUSE_S = (5.0, 15.0)
_BUSY = frozenset({429, 503})
_WAITING = frozenset({Status.PAUSED, Status.ALLOWANCE, Status.CAP, Status.RATE})
"""A mark that was refused so has its lane waiting already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creating:
    """What dispatching to one configured provider takes."""

    port: CreatePort
    settings: ProviderSettings
    lease_s: float
    tls: ssl.SSLContext


@dataclass(slots=True, kw_only=True)
class _Sending:
    """A POST under its committed mark. `began` is boot time in seconds, read before the mark was handed over; `reply` is there once read."""

    marked: Operation
    progress: Progress
    creating: Creating
    began: float
    reply: ev.Reply | None = None


class Dispatcher:
    """Handles `dispatch` messages."""

    def __init__(self, desk: Desk, providers: Mapping[str, Creating]) -> None:
        self._desk = desk
        self._providers = providers
        self._sending: dict[tuple[OperationId, int], _Sending] = {}

    async def handle(self, work: Work) -> None:
        """Dispatch the operation if it is prepared and due; a repeated message never means a repeated POST."""
        reached = self._desk.seams.faults.reached
        reached(Point.D2_LOADED)
        if not await self._is_due(work):
            return
        text = await self._specification(work)
        if text is None:
            return
        reached(Point.D3_CHECKED)
        creating = self._providers[work.message.provider]
        async with self._desk.trust.turn(creating.settings.account):
            if self._desk.draining:
                await self._desk.release(work.message, 0.0)
                return
            await self._dispatch(work, text, creating)

    async def _dispatch(self, work: Work, text: bytes, creating: Creating) -> None:
        seams = self._desk.seams
        # before the mark is handed over: its commit's duration counts against the window
        began = seams.clock.boottime()
        dispatch_id = DispatchId(seams.ids.uuid7())
        seams.faults.reached(Point.D4_MARK_COMMIT_SENT)
        saved = await self._mark(work.operation, dispatch_id, creating)
        if not saved.applied:
            await self._after_refused_mark(work, dispatch_id, saved, creating, began)
            return
        sending = _Sending(
            marked=_marked(work.operation, dispatch_id, creating, saved),
            progress=Progress(seams.clock),
            creating=creating,
            began=began,
        )
        self._sending[work.message.slot] = sending
        seams.faults.reached(Point.D5_MARK_DURABLE)
        exchange = await self._send(text, dispatch_id, sending)
        reply = creating.port.reply(exchange, dispatch_id=dispatch_id, now=seams.clock.now())
        if isinstance(reply, ev.NotSent):
            self._desk.complaints.about(work.message.provider, reply.cause)
        sending.reply = reply
        seams.faults.reached(Point.D11_PARSED)
        await self._save(work, sending, reply, exchange)
        # an answer that leaves doubt shows nothing: where all are such, they are had one by one
        usable_status = None if isinstance(reply, ev.Doubted) else exchange.status
        self._desk.trust.answered(creating.settings.account, usable_status)
        del self._sending[work.message.slot]

    async def surprised(self, work: Work) -> bool:
        """After what nobody foresaw: a POST that was marked ends as its reply said, or in doubt with the evidence so far."""
        sending = self._sending.pop(work.message.slot, None)
        if sending is None or sending.marked.dispatch_id is None:
            return False
        exchange, dispatch_id = sending.progress.exchange(), sending.marked.dispatch_id
        echoes = sending.creating.settings.echoes
        reply = sending.reply or ev.Doubted(dispatch_id=dispatch_id, cause="unforeseen", looked_up=echoes)
        if sending.reply is None and exchange.complete:
            reply = sending.creating.port.reply(exchange, dispatch_id=dispatch_id, now=self._desk.seams.clock.now())
        await self._save(work, sending, reply, exchange)
        return True

    async def _is_due(self, work: Work) -> bool:
        """Check what the message refers to; anything but a prepared operation is dealt with here and is not sent."""
        operation, desk = work.operation, self._desk
        match operation.phase:
            case Phase.PREPARED if operation.is_withdrawn:
                await desk.decide(advance(operation, ev.DeadlinePassed(), operation.read_at))
            case Phase.PREPARED if operation.not_before_at and operation.not_before_at > operation.read_at:
                await desk.release(work.message, (operation.not_before_at - operation.read_at).total_seconds())
            case Phase.PREPARED:
                return True
            case Phase.DISPATCHING:
                await conclude_doubt(desk, work, looked_up=self._providers[work.message.provider].settings.echoes)
            case Phase.UNCERTAIN:
                await desk.park(work.message, ParkReason.UNCERTAIN)
            case Phase.ACCEPTED | Phase.SUBMISSION_FAILED:
                if await desk.decide(advance(operation, ev.Repeated(actor=desk.worker), operation.read_at)) is None:
                    await desk.acknowledge(work.message)
            case Phase.REJECTED | Phase.CANCELLED | Phase.ABANDONED:
                await desk.acknowledge(work.message)
        return False

    async def _specification(self, work: Work) -> bytes | None:
        """Hash the immutable text again; a text that is not the approved one is never sent."""
        body = (work.specification_text or "").encode()
        if hashlib.sha256(body).hexdigest() == work.operation.specification_hash:
            return body
        await self._desk.park(work.message, ParkReason.SPECIFICATION)
        return None

    async def _mark(self, operation: Operation, dispatch_id: DispatchId, creating: Creating) -> Saved:
        """Commit "may be sent from now on"."""
        settings = creating.settings
        step = advance(operation, ev.Mark(dispatch_id=dispatch_id, account=settings.account), operation.read_at)
        if not isinstance(step, MarkStep):
            return Saved(status=Status.STALE)
        return await self._desk.save(
            MarkSave(
                step=step,
                send_s=settings.send_s,
                quiescent_s=settings.send_s + settings.timeout_s + settings.service_lag_s + settings.margin_s,
                lease_s=creating.lease_s,
                pause_s=self._desk.seams.jitter.between(*_PAUSE_S),
            )
        )

    async def _after_refused_mark(
        self, work: Work, dispatch_id: DispatchId, saved: Saved, creating: Creating, began: float
    ) -> None:
        """No POST follows: the operation moved on, its account is paused, or nobody saw the mark's commit."""
        if saved.status is Status.PAUSED:
            self._desk.trust.paused(creating.settings.account)
        if saved.status in _WAITING:
            return
        if saved.status is Status.UNKNOWN and saved.revision is not None:
            # the mark was found after all, and this process knows that nothing was sent under it
            reply = ev.NotSent(dispatch_id=dispatch_id, cause="mark_commit_unknown")
            marked = _marked(work.operation, dispatch_id, creating, saved)
            sending = _Sending(marked=marked, progress=Progress(self._desk.seams.clock), creating=creating, began=began)
            await self._save(work, sending, reply, sending.progress.exchange())
            return
        await self._desk.release(work.message, 0.0)

    async def _send(self, text: bytes, dispatch_id: DispatchId, sending: _Sending) -> Exchange:
        """The one POST."""
        seams, creating = self._desk.seams, sending.creating
        return await post(
            creating.port.create(text, dispatch_id=dispatch_id),
            window=SendWindow(send_by=sending.began + creating.settings.send_s, limit_s=creating.settings.timeout_s),
            progress=sending.progress,
            tls=creating.tls,
            seams=seams,
        )

    async def _save(self, work: Work, sending: _Sending, reply: ev.Reply, exchange: Exchange) -> None:
        """Save the end of the POST; whoever swept or decided meanwhile, the evidence is written and an id is not dropped."""
        marked, settings = sending.marked, sending.creating.settings
        ended = Ended(
            reply=with_delays(
                reply, work.message.waited, self._desk.seams.jitter.between(0, 1), observe_for_s=settings.observe_for_s
            ),
            exchange=exchange,
            account=settings.account,
            number=marked.dispatch_count,
            authorisation=marked.authorisation,
            authorised_by=marked.authorised_by,
            settle_s=settings.service_lag_s + settings.margin_s,
            began=sending.began,
            held=marked.estimate,
            unit=marked.unit,
            secret=settings.endpoint().api_key.reveal(),
            shut_s=_shut_s(exchange, settings, self._desk.seams.clock.now()),
        )
        await conclude(self._desk, marked, ended)


def _shut_s(exchange: Exchange, settings: ProviderSettings, now: datetime) -> float | None:
    """For how long the service asked everyone of the account to stay away."""
    if exchange.status not in _BUSY:
        return None
    return retry_after_s(exchange.header("retry-after"), now=now, cap_s=settings.throttled_cap_s)


def _marked(operation: Operation, dispatch_id: DispatchId, creating: Creating, saved: Saved) -> Operation:
    """The operation as the mark left it; its estimate is what is held, which may be the provider's default."""
    return replace(
        operation,
        estimate=saved.held,
        phase=Phase.DISPATCHING,
        dispatch_id=dispatch_id,
        account=creating.settings.account,
        dispatch_count=operation.dispatch_count + 1,
        revision=saved.revision if saved.revision is not None else operation.revision + 1,
    )
