"""Natural batching: what waits while one batch commits is the next batch. No delay when idle, large batches under load.

After a batch that had company the committer rests a moment, the longer the more there was, so that the next one has more: a commit costs
about the same for one item as for twenty. After a lone item it does not rest, nor where half a batch waits already.

A batch names a key (an operation, a lane) at most once; the second waits for its turn. A bad row is isolated by halving and never fails
its neighbours; nor does whatever else a writer raises, which goes to the caller. While the database is away the items wait. Once the
worker is to end only what lasts does: an accepted id in here is not given up, everything else comes back when its lease ends.

A batch whose commit was not seen is in doubt. A lane that can tell looks for what the batch would have left behind, as long as that takes,
and only what is not there is written again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Point, Seams
from coatcheck.store.db import Trouble, trouble

logger = logging.getLogger(__name__)

BATCH = 200
"""Items in one statement at most: while it is written, the worker goes on with those of the one before."""
_PAUSE_S = (0.1, 2.0)
_NEXT = "The lease ends by itself and another worker goes on."
_FULL_REST_AT = 4
"""Items of a batch after which the rest is as long as it may be."""
_ENOUGH = BATCH // 2
"""So many that wait already are company enough: no rest."""
AWAY_AFTER_S = 5.0
"""How long a statement may go unanswered before the database counts as away: a commit waits for its standby, and a row for a lock, without any limit."""
STOP_S = 1.0
"""How long what waits may still be written once the worker is told to stop at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How one kind of item is written.

    `resolve` finds the answers of items whose commit was not seen; None for an item that is to be written again. Without it, every item
    is: its guards make that safe.
    """

    write: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
    key: Callable[[Any], Hashable]
    resolve: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]] | None = None


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """An item until it is known what became of it (`is_settled`); `answer` may end earlier, with a caller that was cut off."""

    item: Any
    lasting: bool
    answer: asyncio.Future[Any]
    is_settled: bool = False


class Committer:
    """Writes items of several kinds, batch by batch, in one task of its own.

    Example: `saved = await committer.save(MarkSave(...))`. `save` raises what a bad row raises (SQLSTATE 22, 23); it does not raise for
    an outage, it waits, and raises `Unavailable` only once the worker ends. `rest_s` is the longest rest after a batch, in seconds.

    `away` is set from a batch whose commit was not seen, or not seen for AWAY_AFTER_S, until the next batch that was written or found:
    whoever holds what must not be lost may keep it elsewhere meanwhile. Example: `await committer.away.wait()`. Committers that are handed
    one event share what each of them learns.
    """

    def __init__(
        self, lanes: Mapping[type, Lane], *, seams: Seams, rest_s: float = 0.0, away: asyncio.Event | None = None
    ) -> None:
        self._lanes = lanes
        self._seams = seams
        self._rest_s = rest_s
        self._waiting: deque[_Waiting] = deque()
        self._gathered: dict[type, list[_Waiting]] = {}
        self._wake = asyncio.Event()
        self.away = away or asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        """Runs while a statement is under way."""
        self._is_overdue = False
        self._draining = False
        self._closing = False
        self._stopping = False
        self.commit_count = 0
        self.item_count = 0

    async def save(self, item: Any, *, lasting: bool = False) -> Any:
        """Write `item` with the next batch and return its answer. A cancelled caller's item is written all the same.

        `lasting`: it waits for the database even while the worker drains, for nobody else could bring it again.
        """
        if self._closing:
            raise _ended()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="committer")
        waiting = _Waiting(item=item, lasting=lasting, answer=asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.answer

    def drain(self) -> None:
        """The worker ends: from now on only what is lasting waits for a database that is away, or goes on not answering."""
        if self._timer is not None and not self._draining:
            self._give_time()
        self._draining = True

    def stop(self) -> None:
        """The worker ends at once: what waits is written within a second, or its callers hear `Unavailable`."""
        self._draining = self._closing = self._stopping = True
        self._wake.set()
        if self._task is not None:
            asyncio.get_running_loop().call_later(STOP_S, self._task.cancel)

    async def close(self) -> None:
        """Write what waits, then end. While the database is away this lasts as long as something lasting waits; `stop` ends it."""
        self.drain()
        self._closing = True
        self._wake.set()
        if self._task is not None:
            self._end_unheard()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()

    async def _run(self) -> None:
        try:
            while not self._closing or self._waiting:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    self._gathered = self._gather()
                    for kind, batch in self._gathered.items():
                        await self._write(self._lanes[kind], [each for each in batch if not each.is_settled])
                    await self._rest(sum(len(batch) for batch in self._gathered.values()))
        finally:
            # whoever waits when this task is cancelled must learn of it, not hang
            for waiting in self._unanswered():
                _fail(waiting, _ended())

    async def _rest(self, count: int) -> None:
        """Let company come, if it has not; whoever closes waits for nobody."""
        rest_s = self._rest_s * min(1.0, (count - 1) / _FULL_REST_AT)
        if rest_s > 0 and len(self._waiting) < _ENOUGH and not self._draining:
            await self._seams.sleep(rest_s)

    def _gather(self) -> dict[type, list[_Waiting]]:
        """The next batches, by kind: each key once, the rest in their order for later."""
        taken: dict[type, list[_Waiting]] = {}
        keys: set[Hashable] = set()
        later: deque[_Waiting] = deque()
        while self._waiting and len(keys) < BATCH:
            waiting = self._waiting.popleft()
            kind = type(waiting.item)
            key = self._lanes[kind].key(waiting.item)
            if key in keys:
                later.append(waiting)
                continue
            keys.add(key)
            taken.setdefault(kind, []).append(waiting)
        self._waiting.extendleft(reversed(later))
        return taken

    async def _write(self, lane: Lane, batch: list[_Waiting], *, in_doubt: bool = False) -> None:
        while batch:
            # whatever a writer raises belongs to the callers that wait and must not end this task: it is taken as a value
            outcomes = await asyncio.gather(self._answered(lane, batch, in_doubt=in_doubt), return_exceptions=True)
            match answers := outcomes[0]:
                case Exception():
                    is_news = not in_doubt and lane.resolve is not None and trouble(answers) is Trouble.UNKNOWN
                    in_doubt = in_doubt or is_news
                    batch = await self._failed(lane, batch, answers, in_doubt=in_doubt)
                    # the first look is taken at once: what broke may have been the connection alone
                    if batch and not is_news:
                        await self._seams.sleep(self._seams.jitter.between(*_PAUSE_S))
                case BaseException():
                    raise answers
                case _:
                    batch = self._settled(batch, answers, in_doubt=in_doubt)
                    in_doubt = False

    async def _answered(self, lane: Lane, batch: Sequence[_Waiting], *, in_doubt: bool) -> Sequence[Any]:
        """One statement: the batch is written or, in doubt, looked for."""
        ask = lane.resolve if in_doubt and lane.resolve is not None else lane.write
        self._give_time()
        try:
            self._seams.faults.reached(Point.M1_BATCH_SENT)
            answers = await ask([waiting.item for waiting in batch])
            self._seams.faults.reached(Point.M2_BATCH_ANSWERED)
        finally:
            self._stop_timer()
            self._is_overdue = False
        return answers

    def _give_time(self) -> None:
        """From now on the statement under way has AWAY_AFTER_S to be answered."""
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(AWAY_AFTER_S, self._overdue)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _overdue(self) -> None:
        """The statement under way is not answered: what may be given up does not wait for it while the worker ends."""
        self.away.set()
        self._is_overdue = True
        if self._draining:
            self._give_up()
            self._end_unheard()
        self._give_time()

    def _end_unheard(self) -> None:
        """Whoever closes does not wait for a statement that is overdue and of which nobody is to hear any more."""
        if self._closing and self._is_overdue and not self._unanswered() and self._task is not None:
            self._task.cancel()

    def _settled(self, batch: Sequence[_Waiting], answers: Sequence[Any], *, in_doubt: bool) -> list[_Waiting]:
        """Hand the answers out. What of a batch in doubt has none is not there and is to be written again."""
        self.away.clear()
        self.commit_count += 1
        pairs = list(zip(batch, answers, strict=True))
        answered = [(waiting, answer) for waiting, answer in pairs if answer is not None or not in_doubt]
        self.item_count += len(answered)
        for waiting, answer in answered:
            _settle(waiting, answer)
        return [waiting for waiting, answer in pairs if answer is None and in_doubt]

    async def _failed(self, lane: Lane, batch: list[_Waiting], error: Exception, *, in_doubt: bool) -> list[_Waiting]:
        """What of the batch is to be tried again."""
        kind = trouble(error)
        state = getattr(error, "sqlstate", None)
        name = type(error).__name__
        logger.warning(
            "batch failed", extra={"trouble": kind.name, "error": name, "sqlstate": state, "count": len(batch)}
        )
        match kind:
            case Trouble.BAD_ROW | Trouble.DEFECT if len(batch) > 1:
                middle = len(batch) // 2
                await self._write(lane, batch[:middle], in_doubt=in_doubt)
                await self._write(lane, batch[middle:], in_doubt=in_doubt)
                return []
            case Trouble.BAD_ROW | Trouble.DEFECT:
                _fail(batch[0], error)
                return []
            case Trouble.UNKNOWN:
                self.away.set()
                # a connection that broke is opened anew: only where that fails, too, is the database away
                if not isinstance(error, CommitUnknown):
                    self._give_up()
            case Trouble.LOCKED:
                # the time that its role gives a lock is over: nobody knows for how much longer it is held
                self._give_up()
            case Trouble.AGAIN:
                pass
            case _:
                assert_never(kind)
        return [each for each in batch if not each.is_settled]

    def _give_up(self) -> None:
        """The database is away: whoever does not go on waiting for it hears of it."""
        for waiting in self._unanswered():
            if self._stopping or (self._draining and not waiting.lasting):
                _fail(waiting, Unavailable("the database is away while the worker ends", next=_NEXT))
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.is_settled)

    def _unanswered(self) -> list[_Waiting]:
        """Everybody whose item is not known to be written."""
        gathered = [waiting for batch in self._gathered.values() for waiting in batch]
        return [waiting for waiting in (*gathered, *self._waiting) if not waiting.is_settled]


def _ended() -> Unavailable:
    return Unavailable("the committer ended", next=_NEXT)


def _settle(waiting: _Waiting, answer: Any) -> None:
    waiting.is_settled = True
    if not waiting.answer.done():
        waiting.answer.set_result(answer)


def _fail(waiting: _Waiting, error: Exception) -> None:
    waiting.is_settled = True
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
