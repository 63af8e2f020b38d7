"""The worker's loop: claim, hand out, and survive what a handler did not foresee. The only place that catches every exception.

After an unforeseen exception the message goes back, and its bad lease counts; a POST that was marked ends in doubt at once. A message
whose leases keep ending badly is parked instead of being handled, so it cannot take one worker after another with it; before that, it is
handled alone (`seclusion`), so it cannot take its neighbours with it either.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

from coatcheck.core.actions import Action, ParkReason, WaitReason
from coatcheck.core.delays import backoff_s
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Phase
from coatcheck.errors import CoatcheckError, Unavailable
from coatcheck.queue.leases import Leases, Message
from coatcheck.seams import Point, Seams
from coatcheck.workers.desk import Desk, Work
from coatcheck.workers.lessor import Lessor
from coatcheck.workers.listener import Bedtime
from coatcheck.workers.renewal import Renewer, settled
from coatcheck.workers.tally import Tally

logger = logging.getLogger(__name__)

BAD_LEASES = 5
"""Consecutive leases of one message that may end badly before it is parked."""
_OUTAGE_PAUSE_S = (0.2, 2.0)
_UNANSWERED_S = 5.0
"""How long a worker that ends waits for a claim under way: a commit waits for its standby, and a row for a lock, without any limit."""
_AGAIN_S = 1.0
"""How soon background work that ended unforeseen begins again."""
_CLOSED_S = 0.1
"""How soon `until idle` asks again for what is due and could not be claimed."""
_RECEIVED: Mapping[Action, Point] = {
    Action.DISPATCH: Point.D1_RECEIVED,
    Action.OBSERVE: Point.O1_RECEIVED,
    Action.DELIVER: Point.V1_RECEIVED,
}
_INTERRUPTIBLE = frozenset({Action.OBSERVE, Action.DELIVER})
"""Actions that may be cut off at any await: they only read, and whoever repeats them loses nothing."""


class Handler(Protocol):
    """Does one short, repeatable action."""

    async def handle(self, work: Work) -> None:
        """Do it. Outcomes are saved, not returned; what is raised was not foreseen."""

    async def surprised(self, work: Work) -> bool:
        """After an unforeseen exception of `handle`: end what cannot be repeated. False: the action may simply be done again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What `until idle` counts: the worker's own actions, providers and accounts."""

    actions: Sequence[Action]
    providers: Sequence[str]
    accounts: Sequence[str]


class Worker:
    """Runs handlers on what the lessor claims until it is drained, or until nothing is left to do.

    Example: `await worker.run(until_idle=True)`.
    """

    def __init__(
        self,
        *,
        desk: Desk,
        lessor: Lessor,
        renewer: Renewer,
        handlers: Mapping[Action, Handler],
        scope: Scope,
        leases: Leases,
        bedtime: Bedtime | None,
    ) -> None:
        self._desk = desk
        self._lessor = lessor
        self._renewer = renewer
        self._handlers = handlers
        self._scope = scope
        self._leases = leases
        self._bedtime = bedtime
        self._tasks: dict[asyncio.Task[None], Work] = {}
        self._course: asyncio.Task[Any] | None = None
        self._draining = asyncio.Event()
        self._stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether it was told to end at once."""
        return self._stopped

    @property
    def is_draining(self) -> bool:
        """Whether it leases nothing any more."""
        return self._draining.is_set()

    @property
    def tally(self) -> Tally:
        """What it counts about itself."""
        return self._desk.tally

    def drain(self) -> None:
        """Stop leasing, let dispatches finish, give the rest back, then end. May be called from a signal handler.

        While the database is away only the end of a POST waits for it; what cannot be given back ends with its lease.
        """
        self._desk.drain()
        self._draining.set()
        self._lessor.wake()

    def stop(self) -> None:
        """End at once, whatever the database does: POSTs under way are cut off and end in doubt. May be called from a signal handler."""
        self.drain()
        self._stopped = True
        self._desk.stop()
        for task in (*self._tasks, self._course):
            if task is not None:
                task.cancel()

    async def run(self, *, until_idle: bool = False) -> None:
        """Work. Returns when drained or, with `until_idle`, when only parked, accounting and waiting rows are left."""
        self._course = asyncio.current_task()
        renewing = asyncio.create_task(self._renewer.run(), name="renewer")
        leasing = asyncio.create_task(self._lease(until_idle=until_idle), name="leasing")
        try:
            await self._until_ended(leasing)
        finally:
            try:
                await self._finish()
            finally:
                await settled(renewing)

    async def _until_ended(self, leasing: asyncio.Task[None]) -> None:
        """Until it leases no more. A claim that nobody answers holds up no worker that ends: what it leased comes back when those leases end."""
        told = asyncio.create_task(self._draining.wait(), name="told to end")
        try:
            await asyncio.wait([leasing, told], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([leasing], timeout=_UNANSWERED_S)
        finally:
            told.cancel()
            await settled(leasing)
        if not leasing.cancelled():
            leasing.result()

    async def _lease(self, *, until_idle: bool) -> None:
        """Claim, hand out and rest until drained, or until nothing is left."""
        tried_waiting = False
        while not self._draining.is_set():
            claimed = await self._claim()
            # what was woken for its one more try is no news, however many claims it takes
            tried_waiting = tried_waiting and all(_waits(work) for work in claimed)
            if not claimed and until_idle and not self._tasks:
                left, waiting = await self._left()
                if left == 0 and (waiting == 0 or tried_waiting):
                    return
                if left == 0:
                    tried_waiting = await self._wake_waiting()
                    continue
            await self._rest()

    async def _claim(self) -> list[Work]:
        """Claim and hand out. An outage is waited out."""
        try:
            found = await self._lessor.claim()
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("claim failed", extra={"error": type(error).__name__})
            await self._desk.seams.sleep(self._desk.seams.jitter.between(*_OUTAGE_PAUSE_S))
            return []
        if self._draining.is_set():
            await self._give_back(found)
            return []
        for work in found:
            task = asyncio.create_task(
                self._work(work), name=f"{work.message.action} {operation_text(work.message.operation_id)}"
            )
            self._tasks[task] = work
            task.add_done_callback(self._ended)
        return found

    async def _give_back(self, found: Sequence[Work]) -> None:
        """What was claimed while the worker was told to end: a task that is cut off before its first step could not release it."""
        await asyncio.gather(*(self._return(work.message) for work in found))
        for work in found:
            self._lessor.done(work.message)

    async def _return(self, message: Message) -> None:
        """Give a message back as it was; where the database is away while the worker ends, its lease ends by itself."""
        with suppress(Unavailable):
            await self._desk.release(message, 0.0)

    async def _rest(self) -> None:
        """Nothing was due: announce the sleep, look once more if that was news, then wait."""
        try:
            if self._bedtime is not None and await self._bedtime.announce():
                return
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("announcing failed", extra={"error": type(error).__name__})
        await self._lessor.wait()

    async def _left(self) -> tuple[int, int]:
        try:
            left = await self._leases.left(self._scope.actions, self._scope.providers, self._scope.accounts)
        except (psycopg.Error, CoatcheckError):
            return 1, 0
        if left.left_count and left.next_s is not None:
            # what is due and was not claimed waits for a budget or for another claim's rows: not asked for at once
            self._lessor.wake(max(0.001, left.next_s) if left.next_s > 0 else _CLOSED_S)
        return left.left_count, left.waiting_count

    async def _wake_waiting(self) -> bool:
        """Make what waits for an allowance or a pause due once more; whether that came about. Of looks that are paused the next claim is the try."""
        try:
            await self._leases.wake_waiting(self._scope.providers)
        except (psycopg.Error, CoatcheckError):
            return False
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        work = self._tasks.pop(task)
        self._renewer.drop(work.message)
        self._lessor.done(work.message)

    async def _work(self, work: Work) -> None:
        """Handle one message."""
        desk, message = self._desk, work.message
        began = desk.seams.clock.boottime()
        self._renewer.hold(message)
        try:
            if message.action in _RECEIVED:
                desk.seams.faults.reached(_RECEIVED[message.action])
            if _is_spent(work):
                await desk.park(message, ParkReason.LEASE_COUNT)
                return
            await self._handlers[message.action].handle(work)
        except asyncio.CancelledError:
            await self._return(message)
            raise
        except Exception as error:  # noqa: BLE001 - a handler's surprise must neither end the worker nor lose the message
            if isinstance(error, Unavailable) and self._draining.is_set():
                logger.warning("given up", extra=_described(work, error))
                return
            # not logger.exception: a traceback quotes values, and those may be a specification
            logger.error("unforeseen", extra=_described(work, error))  # noqa: TRY400 - as just said
            await self._surprised(work, error)
        finally:
            desk.tally.took(message.action, round((desk.seams.clock.boottime() - began) * 1000))

    async def _surprised(self, work: Work, cause: Exception) -> None:
        """The handler ends what it had begun, or the message goes back and its bad lease counts; failing that, the lease ends by itself."""
        try:
            if await self._handlers[work.message.action].surprised(work):
                return
            delay_s = backoff_s(work.message.lease_count, self._desk.seams.jitter.between(0, 1))
            await self._desk.release(work.message, delay_s, forgives=False, error=type(cause).__name__)
        except Exception as error:  # noqa: BLE001 - the second surprise in a row: what the lease's end says stands
            logger.error("unforeseen again", extra=_described(work, error))  # noqa: TRY400 - as above

    async def _finish(self) -> None:
        """Let dispatches end; cut off what may be repeated freely and give it back."""
        self._desk.drain()
        for task, work in list(self._tasks.items()):
            if work.message.action in _INTERRUPTIBLE:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def kept_going(work: Callable[[], Awaitable[None]], seams: Seams) -> None:
    """Background work that ends unforeseen begins again: without it replies would lie on the disk, and a restore go unseen."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - whatever it was, the worker lives on and needs this work
            logger.critical("background work ended and begins again", extra={"error": type(error).__name__})
        await seams.sleep(_AGAIN_S)


def _is_spent(work: Work) -> bool:
    """Whether nobody should handle it any more. What may have been sent ends in doubt first, and doubt is a person's by itself."""
    message = work.message
    is_open = work.operation.phase is Phase.DISPATCHING or message.action is Action.RECONCILE
    return message.lease_count > BAD_LEASES and not is_open


def _waits(work: Work) -> bool:
    """Whether the message waited for money or for an account that is paused; looks of such an account are not claimed at all."""
    return work.message.waited.reason in (WaitReason.ALLOWANCE, WaitReason.PAUSE)


def _described(work: Work, error: Exception) -> dict[str, object]:
    """A surprise without its text, which could quote a specification or a credential."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}" if trace is not None else "?"
    return {
        "operation_id": operation_text(work.message.operation_id),
        "action": work.message.action,
        "error": type(error).__name__,
        "place": place,
    }
