"""Saves what dead workers of this host left in their spools, at the start and every few seconds: a paid id needs no person to come back.

Whatever is told already changes nothing, so a replay that is killed is repeated whole. A database that goes away puts it off. A line counts
as saved only by a read that a standby confirmed: the file that goes then is the only other copy.
"""

import asyncio
import enum
import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg

from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.core.operation import Operation, OperationId, Phase, RemoteJobId
from coatcheck.core.steps import ConcludeStep
from coatcheck.errors import CoatcheckError
from coatcheck.seams import Point, Seams
from coatcheck.spool.folder import Held
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Damaged, Foreign, Record, read
from coatcheck.store.db import Database, Trouble, trouble
from coatcheck.store.door import ConcludeSave, Door, Saved
from coatcheck.store.ends import End, end_of
from coatcheck.store.operations import load
from coatcheck.workers import alarms
from coatcheck.workers.conclusion import Ended, keep, see_through
from coatcheck.workers.desk import Desk

logger = logging.getLogger(__name__)

EVERY_S = 3.0


class _Fate(enum.Enum):
    """What became of a line."""

    SAVED = enum.auto()
    DAMAGED = enum.auto()
    WAITS = enum.auto()


class Replayer:
    """One worker's; its own open lines, which `spool` holds, it saves from memory."""

    def __init__(self, spool: Spool, desk: Desk, database: Database) -> None:
        self._spool = spool
        self._desk = desk
        self._database = database
        self._books = _Direct(database, desk.worker, desk.seams)
        self._said: set[str] = set()

    async def run(self) -> None:
        """Replay until cancelled."""
        while True:
            await self._desk.seams.sleep(EVERY_S)
            if self._desk.spooling is not None:
                await self._desk.spooling.let_go()
            await self.replay()

    async def replay(self) -> None:
        """Take every file whose owner is dead, and save what is in it."""
        try:
            for path in await asyncio.to_thread(self._spool.others):
                await self._file(path)
        except OSError as error:
            self._say_once(f"the spool cannot be read: {error.strerror}", self._spool.folder.path)
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("replay put off", extra={"error": type(error).__name__})

    async def _file(self, path: Path) -> None:
        try:
            held = Held.taken(path)
            if held is None:
                return
            try:
                await self._held(held)
            finally:
                held.close()
        except OSError as error:
            self._say_once(f"a file of the spool cannot be replayed: {error.strerror}", path)

    async def _held(self, held: Held) -> None:
        """Save what is in a file, then end the file: it is removed, set aside if part of it is damaged, or left if part of it must wait."""
        reached = self._desk.seams.faults.reached
        content = await asyncio.to_thread(held.content)
        reached(Point.S3_TAKEN)
        fates: Counter[_Fate] = Counter()
        offset = 0
        for line in content.splitlines(keepends=True):
            fates[await self._line(held.path, offset, line)] += 1
            offset += len(line)
        reached(Point.S4_REPLAYED)
        if fates[_Fate.DAMAGED] and not fates[_Fate.WAITS]:
            await asyncio.to_thread(held.set_aside)
        elif not fates[_Fate.WAITS]:
            await asyncio.to_thread(held.remove)
        reached(Point.S5_REMOVED)
        if fates[_Fate.SAVED]:
            logger.warning("replayed", extra={"file": held.path.name, "count": fates[_Fate.SAVED]})
            self._desk.wake(0.0)

    async def _line(self, path: Path, offset: int, line: bytes) -> _Fate:
        """What became of one line. Raises what says that the database is away."""
        try:
            if await self._record(read(line)):
                return _Fate.SAVED
        except Damaged:
            self._say_once("a damaged line is set aside", path, offset)
            return _Fate.DAMAGED
        except Foreign:
            self._say_once("a line of another version waits for a worker of that version", path, offset)
            return _Fate.WAITS
        except psycopg.Error as error:
            if trouble(error) not in (Trouble.BAD_ROW, Trouble.DEFECT):
                raise
        self._say_once("a line cannot be saved", path, offset)
        return _Fate.WAITS

    async def _record(self, record: Record) -> bool:
        """Save one end, unless it was told already; whether it is told now."""
        end = await self._end(record)
        if not _is_told(record, end):
            await self._save(record, end)
            end = await self._end(record)
        return _is_told(record, end)

    async def _end(self, record: Record) -> End:
        return await end_of(
            self._database,
            operation_id=record.operation_id,
            dispatch_id=record.dispatch_id,
            account=record.account,
            remote_job_id=_named_job(record),
        )

    async def _save(self, record: Record, end: End) -> None:
        ended = _ended(record, self._desk.seams)
        if end.operation is None:
            await keep(self._books, record.operation_id, ended)
        elif not end.is_marked and end.operation.phase is Phase.PREPARED:
            # the mark was lost with a failover, and what may have been sent under it must not be sent again
            marked = replace(end.operation, phase=Phase.DISPATCHING, dispatch_id=record.dispatch_id)
            await see_through(self._books, marked, ended)
        else:
            await see_through(self._books, end.operation, ended)

    def _say_once(self, what: str, path: Path, offset: int = 0) -> None:
        if (words := f"{what} {path.name} {offset}") not in self._said:
            self._said.add(words)
            logger.error(what, extra={"file": path.name, "offset": offset})


class _Direct:
    """Saves one end at a time, and does not wait for a database that is away: the disk has the line."""

    def __init__(self, database: Database, worker: str, seams: Seams) -> None:
        self.seams = seams
        self._database = database
        self._door = Door(database, worker)

    async def save(self, save: ConcludeSave, /) -> Saved:
        (saved,) = await self._door.conclude([save])
        alarms.about(save, saved)
        return saved

    async def operation(self, operation_id: OperationId, *, lasting: bool = False) -> Operation | None:  # noqa: ARG002 - the port's form
        return (await load(self._database, [operation_id])).get(operation_id)


def _is_told(record: Record, end: End) -> bool:
    """Whether saving it again would add nothing. An end whose conclusion was refused may be judged anew, as after a cancel."""
    if end.outcome is None:
        return False
    if end.holder_id not in (None, record.operation_id):
        # another operation has the job: as evidence it is here, or an id that came before it is
        return end.remote_job_id is not None
    return _is_kept(_named_job(record), end) and not _has_place(record, end)


def _is_kept(job: RemoteJobId | None, end: End) -> bool:
    """Whether the id, if there is one, is recorded with this operation."""
    owned = end.operation.remote_job_id if end.operation is not None else None
    return job is None or end.holder_id is not None or job in (end.remote_job_id, owned)


def _has_place(record: Record, end: End) -> bool:
    """Whether the reply would still conclude: its dispatch is the present one, and nothing that is saved of it proves more."""
    if end.operation is None or end.operation.dispatch_id != record.dispatch_id:
        return False
    step = advance(end.operation, record.reply, end.operation.read_at)
    if not isinstance(step, ConcludeStep) or step.phase is None:
        return False
    return end.outcome is None or end.outcome.rank <= step.outcome.rank


def _named_job(record: Record) -> RemoteJobId | None:
    reply = record.reply
    return reply.remote_job_id if isinstance(reply, ev.Accepted | ev.FailedWithId) else None


def _ended(record: Record, seams: Seams) -> Ended:
    """As a worker would hold it that had lived until now. The line was redacted before it was written."""
    since_s = max(0.0, (seams.clock.now() - record.kept_at).total_seconds())
    return Ended(
        reply=record.reply,
        exchange=record.exchange,
        account=record.account,
        number=record.number,
        authorisation=record.authorisation,
        authorised_by=record.authorised_by,
        settle_s=record.settle_s,
        began=seams.clock.boottime() - record.begun_ago_s - since_s,
        held=record.held,
        unit=record.unit,
        secret="",
    )
