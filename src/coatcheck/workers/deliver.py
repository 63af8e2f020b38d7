"""Fetches outputs of succeeded renders into the sink. Its failures stay its own: the render is never touched, and nothing here creates."""

from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.core import events as ev
from coatcheck.core.actions import WaitReason
from coatcheck.core.delays import backoff_s
from coatcheck.core.identity import operation_text
from coatcheck.core.machine import advance
from coatcheck.core.operation import RenderState
from coatcheck.core.steps import DeliverStep
from coatcheck.delivery.fetch import Deliverer
from coatcheck.delivery.outcome import NotStored, OutputSource, Reason, Stored
from coatcheck.seams import Point
from coatcheck.store.door import DeliverSave
from coatcheck.store.operations import Delivery
from coatcheck.workers.desk import Desk, Work

_WRONG_BYTES = frozenset({Reason.UNEXPECTED_TYPE, Reason.CHECKSUM_MISMATCH, Reason.LENGTH_MISMATCH})
_WRONG_BYTES_TRIES = 4
"""The service is there and serves the wrong thing: asking often does not make it right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivering:
    """What delivering outputs of one configured provider takes. `tries` bounds the failures in a row before a person is asked."""

    deliverer: Deliverer
    tries: int


class DeliveryHandler:
    """Handles `deliver` messages."""

    def __init__(self, desk: Desk, providers: Mapping[str, Delivering]) -> None:
        self._desk = desk
        self._providers = providers

    async def handle(self, work: Work) -> None:
        """Deliver one output, or say when to try again."""
        output = self._due_output(work)
        if output is None:
            await self._desk.acknowledge(work.message)
            return
        self._desk.seams.faults.reached(Point.V2_LOADED)
        delivering = self._providers[work.message.provider]
        result = await delivering.deliverer.deliver(self._source(work, output))
        match result:
            case Stored():
                await self._save(work, _stored(output, result))
            case NotStored():
                await self._failed(work, output, result, delivering.tries)
        self._desk.seams.faults.reached(Point.V11_ACKNOWLEDGED)

    async def surprised(self, work: Work) -> bool:  # noqa: ARG002 - the port's form
        """Nothing here is beyond repeating."""
        return False

    def _due_output(self, work: Work) -> Delivery | None:
        """The output that this lane is for, unless it is delivered already or nothing is due any more."""
        if work.operation.render_state is not RenderState.SUCCEEDED or work.output is None:
            return None
        return work.output if work.output.state != "delivered" else None

    def _source(self, work: Work, output: Delivery) -> OutputSource:
        return OutputSource(
            operation_id=operation_text(work.operation.operation_id),
            tenant_id=work.operation.tenant_id,
            index=output.index,
            url=output.source,
            content_type=output.declared_type,
            bytes=output.declared_bytes,
            sha256=output.declared_sha256,
        )

    async def _failed(self, work: Work, output: Delivery, result: NotStored, tries: int) -> None:
        """Back off, ask for a fresh source, or set the delivery aside when its tries are spent."""
        count = work.message.waited.count if work.message.waited.reason == WaitReason.DELIVERY_FAILED else 0
        delay_s = max(backoff_s(count, self._desk.seams.jitter.between(0, 1)), result.retry_after_s or 0)
        tries = min(tries, _WRONG_BYTES_TRIES) if result.reason in _WRONG_BYTES else tries
        if not result.retryable or count + 1 >= tries:
            await self._save(work, ev.OutputFailed(index=output.index, cause=result.reason))
        elif result.reason is Reason.EXPIRED:
            await self._save(work, ev.SourceExpired(index=output.index, delay_s=delay_s))
        else:
            await self._desk.release(work.message, delay_s, WaitReason.DELIVERY_FAILED)

    async def _save(self, work: Work, event: ev.OutputStored | ev.OutputFailed | ev.SourceExpired) -> None:
        faults = self._desk.seams.faults
        step = advance(work.operation, event, work.operation.read_at)
        faults.reached(Point.V9_SAVE_COMMIT_SENT)
        if isinstance(step, DeliverStep):
            saved = await self._desk.save(DeliverSave(step=step))
            if not saved.applied:
                await self._desk.release(work.message, 0.0)
        faults.reached(Point.V10_SAVED)


def _stored(output: Delivery, stored: Stored) -> ev.OutputStored:
    return ev.OutputStored(
        index=output.index,
        uri=stored.uri,
        sha256=stored.sha256,
        bytes=stored.bytes,
        sniffed_type=stored.sniffed_type,
    )
