"""Keeps the end of a POST on this host's disk while the database does not have it, so that it outlives the process that holds it.

A line is written once the database lets itself be waited for, and at once where it is known to be away, or where whoever was to save the
end is cut off. A disk that refuses is said aloud and tried again: the end is in memory all the same. A worker that is told to end does not
wait for the database without limit once the disk has the line: the next worker replays it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import DispatchId
from coatcheck.errors import Unavailable
from coatcheck.seams import Point, Seams
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Record

logger = logging.getLogger(__name__)

PATIENCE_S = 1.0
"""How long the database may take before the end of a POST is kept on the disk, too."""
_LOOK_S = 0.1
"""How often it is looked whether the database is known to be away."""
_AGAIN_S = 5.0
LEAVE_S = 3.0
"""How long a worker that is told to end still waits for the database once the end of a POST is on the disk."""


class Spooling:
    """One worker's. `away` is set while the database is known to be away; `record` of `until_saved` makes the line when it is needed."""

    def __init__(self, spool: Spool, away: asyncio.Event, seams: Seams, *, patience_s: float = PATIENCE_S) -> None:
        self._spool = spool
        self._away = away
        self._seams = seams
        self._patience_s = patience_s
        self._held: Counter[DispatchId] = Counter()
        self._begun: set[DispatchId] = set()
        """Whose lines may be on the disk: asking the spool itself could wait for a disk."""
        self._said: set[DispatchId] = set()
        """Whose lines were said to be there."""
        self._complained = False
        self._leaving = asyncio.Event()
        self.has_left = False
        """Whether a reply was left to the next worker."""

    @asynccontextmanager
    async def until_saved(self, dispatch_id: DispatchId, record: Callable[[], Record]) -> AsyncIterator[None]:
        """The body saves the end of this dispatch. While it lasts the end is on the disk; when it fails the end stays there.

        Raises `Unavailable` when the worker was told to end, the end is on the disk and the database had LEAVE_S since.
        """
        limit = asyncio.timeout(None)
        watch = _Watch(self, record, limit)
        self._held[dispatch_id] += 1
        try:
            async with limit:
                yield
            await watch.over()
            if dispatch_id in self._begun:
                await asyncio.to_thread(self._spool.settle, dispatch_id)
                self._forget(dispatch_id)
        except BaseException as error:
            # nobody may be there for the next await: the line is on the disk before anything else happens
            self._cut_off(record, error)
            if isinstance(error, TimeoutError) and limit.expired():
                self.has_left = True
                raise _left() from error
            raise
        finally:
            watch.cancel()
            self._let_off(dispatch_id)

    def _let_off(self, dispatch_id: DispatchId) -> None:
        """One saving of it less. A difference of two counters would look at all that are held."""
        self._held[dispatch_id] -= 1
        if not self._held[dispatch_id]:
            del self._held[dispatch_id]

    def leave(self) -> None:
        """The worker ends: what is on the disk is left to the next one, unless the database takes it within LEAVE_S."""
        self._leaving.set()

    async def left(self) -> None:
        """Return when what is on the disk may be left there."""
        await self._leaving.wait()
        await self._seams.sleep(LEAVE_S)

    async def let_go(self) -> None:
        """Leave to the replay what nobody saves any more: its saving failed, and nobody began it anew."""
        open_lines = await asyncio.to_thread(self._spool.open_lines)
        for dispatch_id in open_lines - set(self._held):
            self._forget(dispatch_id)
            await asyncio.to_thread(self._spool.let_go, dispatch_id)

    async def append(self, record: Record) -> bool:
        """Put the line on the disk, beside the event loop; whether it is there."""
        self._seams.faults.reached(Point.S1_APPENDING)
        self._begun.add(record.dispatch_id)
        try:
            await asyncio.to_thread(self._spool.append, record)
        except OSError as error:
            self._complain(error)
            return False
        self._kept(record)
        self._seams.faults.reached(Point.S2_SPOOLED)
        return True

    def append_at_once(self, record: Record) -> None:
        """The same without an await. The event loop stands still while the disk flushes this line, and before it one that a thread writes."""
        self._begun.add(record.dispatch_id)
        try:
            self._spool.append(record)
        except OSError as error:
            self._complain(error)
        else:
            self._kept(record)

    def _forget(self, dispatch_id: DispatchId) -> None:
        self._begun.discard(dispatch_id)
        self._said.discard(dispatch_id)

    def is_due(self, waited_s: float) -> bool:
        """Whether the database is known to be away, or has had its time."""
        return self._away.is_set() or waited_s >= self._patience_s

    async def rest(self) -> None:
        """Between two tries of a disk that refuses."""
        await self._seams.sleep(_AGAIN_S)

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            logger.critical(
                "the spool cannot be written: replies are in memory only", extra={"cause": error.strerror or "?"}
            )

    def _kept(self, record: Record) -> None:
        self._complained = False
        if record.dispatch_id not in self._said:
            self._said.add(record.dispatch_id)
            logger.warning("reply spooled", extra={"operation_id": operation_text(record.operation_id)})

    def _cut_off(self, record: Callable[[], Record], error: BaseException) -> None:
        """Keep what `error` leaves unsaved. Where no line can be made of it `error` goes on all the same, with what prevented it as its cause."""
        try:
            self.append_at_once(record())
        except (ValueError, TypeError, RecursionError) as defect:
            logger.critical("a reply cannot be written as a line of the spool", extra={"cause": type(defect).__name__})
            raise error from defect


class _Watch:
    """Writes the line when it is time. A thread that writes is never left behind: the line would be open for ever.

    It is a timer and no task for as long as all is well, which is nearly always.
    """

    def __init__(self, spooling: Spooling, record: Callable[[], Record], limit: asyncio.Timeout) -> None:
        self._spooling = spooling
        self._record = record
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._name = _name()
        self._timer: asyncio.TimerHandle | None = None
        self._course: asyncio.Task[None] | None = None
        self._appending: asyncio.Task[bool] | None = None
        self._look()

    async def over(self) -> None:
        """The end is saved. Strikes and surprises of the writing come out here."""
        if self._course is not None and self._course.done():
            self._course.result()
        self.cancel()
        if self._appending is not None:
            await self._appending

    def cancel(self) -> None:
        """Write nothing from now on; what a thread has begun it ends."""
        if self._timer is not None:
            self._timer.cancel()
        if self._course is not None:
            self._course.cancel()

    def _look(self) -> None:
        if self._spooling.is_due(self._loop.time() - self._began):
            self._course = asyncio.create_task(self._keep(), name=self._name)
        else:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    async def _keep(self) -> None:
        while True:
            self._appending = asyncio.create_task(self._spooling.append(self._record()), name=self._name)
            if await asyncio.shield(self._appending):
                break
            await self._spooling.rest()
        await self._spooling.left()
        self._limit.reschedule(self._loop.time())


def _left() -> Unavailable:
    return Unavailable(
        "the database is away while the worker ends, and the reply lies in the spool",
        next="start a worker on this host again: it saves the reply",
    )


def _name() -> str:
    task = asyncio.current_task()
    return task.get_name() if task is not None else "spooling"
