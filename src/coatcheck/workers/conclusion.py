"""Saving the end of a POST: evidence always, then again with the reloaded operation until the conclusion applies or has no place."""

from dataclasses import dataclass, field

import psycopg

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange
from coatcheck.core.machine import advance
from coatcheck.core.operation import Operation, Phase
from coatcheck.core.redact import redacted
from coatcheck.core.steps import ConcludeStep, SnapshotStep
from coatcheck.seams import Point
from coatcheck.store.door import REPLY_LIMIT_BYTES, ConcludeSave, Saved, SnapshotSave, Status
from coatcheck.workers.desk import Desk


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the POST ended, with what the evidence row needs. `began` is boot time in seconds; `secret` is kept out of the evidence."""

    reply: ev.Reply
    exchange: Exchange
    account: str
    number: int
    authorisation: int
    authorised_by: str
    settle_s: float
    began: float
    secret: str = field(repr=False)


async def conclude(desk: Desk, marked: Operation, ended: Ended) -> None:
    """Save it. The operation may have been swept or decided meanwhile; then the table says what the reply still means."""
    operation: Operation | None = marked
    written: ConcludeStep | None = None
    while operation is not None:
        step = advance(operation, ended.reply, operation.read_at)
        # the same step again would be refused again: its dispatch is not the current one, or its evidence says more already
        if not isinstance(step, ConcludeStep) or (written is not None and (step.phase is None or step == written)):
            return
        desk.seams.faults.reached(Point.D12_SAVE_COMMIT_SENT)
        saved = await _save(desk, step, ended)
        desk.seams.faults.reached(Point.D13_SAVED)
        written = step if saved.status is not Status.STALE else written
        if step.phase is None or saved.status in (Status.APPLIED, Status.OWNED):
            await _first_look(desk, operation, ended.reply, saved)
            desk.seams.faults.reached(Point.D14_ACKNOWLEDGED)
            return
        operation = await desk.operation(operation.operation_id, lasting=True)


async def _save(desk: Desk, step: ConcludeStep, ended: Ended) -> Saved:
    try:
        return await desk.save(_evidence(desk, step, ended, ended.exchange.body))
    except (psycopg.DataError, psycopg.IntegrityError):
        # a reply that cannot be stored must not leave the operation dispatching: the conclusion counts more than the quotation
        return await desk.save(_evidence(desk, step, ended, b""))


def _evidence(desk: Desk, step: ConcludeStep, ended: Ended, body: bytes) -> ConcludeSave:
    return ConcludeSave(
        step=step,
        exchange=ended.exchange,
        account=ended.account,
        number=ended.number,
        authorisation=ended.authorisation,
        authorised_by=ended.authorised_by,
        settle_s=ended.settle_s,
        begun_ago_s=max(0.0, desk.seams.clock.boottime() - ended.began),
        reply=redacted(body, ended.secret)[:REPLY_LIMIT_BYTES] or None,
    )


async def _first_look(desk: Desk, operation: Operation, reply: ev.Reply, saved: Saved) -> None:
    """A reply that is final already saves a look; should this be lost, the observe message brings the same news."""
    if not isinstance(reply, ev.Accepted) or reply.snapshot is None or not saved.applied:
        return
    accepted = await desk.operation(operation.operation_id)
    if accepted is None or accepted.phase is not Phase.ACCEPTED:
        return
    step = advance(accepted, reply.snapshot, accepted.read_at)
    if isinstance(step, SnapshotStep):
        await desk.save(SnapshotSave(step=step))
