"""Saving the end of a POST: evidence always, then again with the reloaded operation until the conclusion applies or has no place.

For as long as the database does not have it, the end is kept on this host's disk as well.
"""

from dataclasses import field, replace
from decimal import Decimal
from functools import partial
from typing import Protocol

import psycopg

from coatcheck.core import events as ev
from coatcheck.core.ends import evidence_of
from coatcheck.core.evidence import Exchange, request_ids
from coatcheck.core.frozen import frozen
from coatcheck.core.machine import advance
from coatcheck.core.operation import Operation, OperationId, Phase
from coatcheck.core.redact import redacted
from coatcheck.core.steps import ConcludeStep, SnapshotStep
from coatcheck.seams import Point, Seams
from coatcheck.spool.record import Record
from coatcheck.store.door import REPLY_LIMIT_BYTES, ConcludeSave, Saved, SnapshotSave, Status
from coatcheck.workers.desk import Desk


@frozen
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
    held: Decimal | None = None
    """What the mark held, in `unit`: needed where its row was lost."""
    unit: str | None = None
    secret: str = field(repr=False)
    shut_s: float | None = None
    """For how long the service asked not to be sent anything."""


class Books(Protocol):
    """Where ends are saved: a worker's desk, which waits for a database that is away, or a replay, which does not."""

    seams: Seams

    async def save(self, save: ConcludeSave, /) -> Saved:
        """Save it through the one door."""

    async def operation(self, operation_id: OperationId, *, lasting: bool = False) -> Operation | None:
        """The operation as it stands now."""


async def conclude(desk: Desk, marked: Operation, ended: Ended) -> None:
    """Save the end of a POST that this process made. A first look that came with it is saved after it."""
    if desk.spooling is None:
        saved = await see_through(desk, marked, ended)
    else:
        record = partial(_record, desk.seams, marked.operation_id, ended)
        async with desk.spooling.until_saved(ended.reply.dispatch_id, record):
            saved = await see_through(desk, marked, ended)
    if saved is not None:
        await _first_look(desk, marked, ended.reply, saved)
        desk.seams.faults.reached(Point.D14_ACKNOWLEDGED)


async def see_through(books: Books, marked: Operation, ended: Ended) -> Saved | None:
    """Save it. The operation may have been swept or decided meanwhile; then the table says what the reply still means."""
    operation: Operation | None = marked
    written: ConcludeStep | None = None
    while operation is not None:
        step = advance(operation, ended.reply, operation.read_at)
        # the same step again would be refused again: its dispatch is not the current one, or its evidence says more already
        if not isinstance(step, ConcludeStep) or (written is not None and (step.phase is None or step == written)):
            return None
        books.seams.faults.reached(Point.D12_SAVE_COMMIT_SENT)
        saved = await _save(books, step, ended)
        books.seams.faults.reached(Point.D13_SAVED)
        written = step if saved.status is not Status.STALE else written
        if step.phase is None or saved.status in (Status.APPLIED, Status.OWNED):
            return saved
        found = await books.operation(operation.operation_id, lasting=True)
        operation = _as_marked(found, step) if saved.status is Status.STALE else found
    return None


def _as_marked(found: Operation | None, step: ConcludeStep) -> Operation | None:
    """The reloaded operation; one that is prepared and names another dispatch may have lost this mark with a failover.

    Then the end is judged as that of a marked one, and the statement alone sees whether the mark is really gone.
    """
    if found is None or found.phase is not Phase.PREPARED or found.dispatch_id == step.dispatch_id:
        return found
    return replace(found, phase=Phase.DISPATCHING, dispatch_id=step.dispatch_id)


async def keep(books: Books, operation_id: OperationId, ended: Ended) -> Saved:
    """Save it as evidence for a person: its operation is gone."""
    return await _save(books, evidence_of(operation_id, ended.reply), ended)


async def _save(books: Books, step: ConcludeStep, ended: Ended) -> Saved:
    try:
        return await books.save(_evidence(books.seams, step, ended, ended.exchange.body))
    except (psycopg.DataError, psycopg.IntegrityError):
        # a reply that cannot be stored must not leave the operation dispatching: the conclusion counts more than the quotation
        return await books.save(_evidence(books.seams, step, ended, b""))


def _evidence(seams: Seams, step: ConcludeStep, ended: Ended, body: bytes) -> ConcludeSave:
    return ConcludeSave(
        step=step,
        exchange=ended.exchange,
        account=ended.account,
        number=ended.number,
        authorisation=ended.authorisation,
        authorised_by=ended.authorised_by,
        settle_s=ended.settle_s,
        begun_ago_s=_begun_ago_s(seams, ended),
        held=ended.held,
        unit=ended.unit,
        request_ids=request_ids(ended.exchange, ended.secret),
        reply=_quotable(body, ended) or None,
        shut_s=ended.shut_s,
    )


def _record(seams: Seams, operation_id: OperationId, ended: Ended) -> Record:
    """The same for the disk, without the reply's body: it may quote the specification, and how it was read is in `reply`."""
    headers = tuple(request_ids(ended.exchange, ended.secret).items())
    return Record(
        operation_id=operation_id,
        reply=ended.reply,
        exchange=replace(ended.exchange, headers=headers, body=b""),
        account=ended.account,
        number=ended.number,
        authorisation=ended.authorisation,
        authorised_by=ended.authorised_by,
        settle_s=ended.settle_s,
        begun_ago_s=_begun_ago_s(seams, ended),
        held=ended.held,
        unit=ended.unit,
        kept_at=seams.clock.now(),
    )


def _quotable(body: bytes, ended: Ended) -> bytes:
    return redacted(body, ended.secret)[:REPLY_LIMIT_BYTES]


def _begun_ago_s(seams: Seams, ended: Ended) -> float:
    return max(0.0, seams.clock.boottime() - ended.began)


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
