"""Natural batching: what waits while one batch commits is the next batch. No delay when idle, large batches under load.

After a batch that had company the committer rests a moment, the longer the more there was, so that the next one has more: a commit costs
about the same for one item as for twenty. After a lone item it does not rest.

A batch names a key (an operation, a lane) at most once; the second waits for its turn. A bad row is isolated by halving and never fails
its neighbours; nor does whatever else a writer raises, which goes to the caller. While the database is away the items wait: an accepted
id in here is not given up.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coatcheck.errors import Unavailable
from coatcheck.seams import Seams
from coatcheck.store.db import Trouble, trouble

logger = logging.getLogger(__name__)

BATCH = 500
"""Items in one statement at most."""
_PAUSE_S = (0.1, 2.0)
_FULL_REST_AT = 16
"""Items of a batch after which the rest is as long as it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How one kind of item is written.

    `on_unknown` answers an item whose commit was not seen; None: write it again, its guards make that safe.
    """

    write: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
    key: Callable[[Any], Hashable]
    on_unknown: Callable[[Any], Any] | None = None


@dataclass(slots=True, kw_only=True)
class _Waiting:
    item: Any
    answer: asyncio.Future[Any]


class Committer:
    """Writes items of several kinds, batch by batch, in one task of its own.

    Example: `saved = await committer.save(MarkSave(...))`. `save` raises what a bad row raises (SQLSTATE 22, 23); it does not raise for
    an outage, it waits. `rest_s` is the longest rest after a batch, in seconds.
    """

    def __init__(self, lanes: Mapping[type, Lane], *, seams: Seams, rest_s: float = 0.0) -> None:
        self._lanes = lanes
        self._seams = seams
        self._rest_s = rest_s
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self.commit_count = 0
        self.item_count = 0

    async def save(self, item: Any) -> Any:
        """Write `item` with the next batch and return its answer. A cancelled caller's item is written all the same."""
        if self._closing:
            raise Unavailable("the committer is closed", next="The lease ends by itself and another worker goes on.")
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="committer")
        waiting = _Waiting(item=item, answer=asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await asyncio.shield(waiting.answer)

    async def close(self) -> None:
        """Write what waits, then end."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        batches: dict[type, list[_Waiting]] = {}
        try:
            while not self._closing or self._waiting:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    batches = self._gather()
                    for kind, batch in batches.items():
                        await self._write(self._lanes[kind], batch)
                    await self._rest(sum(len(batch) for batch in batches.values()))
        finally:
            # whoever waits when this task is cancelled must learn of it, not hang
            for waiting in [*self._waiting, *(waiting for batch in batches.values() for waiting in batch)]:
                _fail(
                    waiting,
                    Unavailable("the committer ended", next="The lease ends by itself and another worker goes on."),
                )

    async def _rest(self, count: int) -> None:
        """Let company come; whoever closes waits for nobody."""
        rest_s = self._rest_s * min(1.0, (count - 1) / _FULL_REST_AT)
        if rest_s > 0 and not self._closing:
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

    async def _write(self, lane: Lane, batch: list[_Waiting]) -> None:
        finished = False
        while not finished:
            # whatever a writer raises belongs to the callers that wait and must not end this task: it is taken as a value
            outcomes = await asyncio.gather(_answered(lane, batch), return_exceptions=True)
            match written := outcomes[0]:
                case Exception():
                    finished = await self._failed(lane, batch, written)
                case BaseException():
                    raise written
                case _:
                    self.commit_count += 1
                    self.item_count += len(batch)
                    for waiting, answer in written:
                        _settle(waiting, answer)
                    finished = True

    async def _failed(self, lane: Lane, batch: list[_Waiting], error: Exception) -> bool:
        """Whether the batch is finished; False: the same batch again."""
        kind = trouble(error)
        state = getattr(error, "sqlstate", None)
        name = type(error).__name__
        logger.warning(
            "batch failed", extra={"trouble": kind.name, "error": name, "sqlstate": state, "count": len(batch)}
        )
        match kind:
            case Trouble.BAD_ROW | Trouble.DEFECT if len(batch) > 1:
                middle = len(batch) // 2
                await self._write(lane, batch[:middle])
                await self._write(lane, batch[middle:])
                return True
            case Trouble.BAD_ROW | Trouble.DEFECT:
                _fail(batch[0], error)
                return True
            case Trouble.UNKNOWN if lane.on_unknown is not None:
                for waiting in batch:
                    _settle(waiting, lane.on_unknown(waiting.item))
                return True
            case _:
                await self._seams.sleep(self._seams.jitter.between(*_PAUSE_S))
                return False


async def _answered(lane: Lane, batch: Sequence[_Waiting]) -> list[tuple[_Waiting, Any]]:
    answers = await lane.write([waiting.item for waiting in batch])
    return list(zip(batch, answers, strict=True))


def _settle(waiting: _Waiting, answer: Any) -> None:
    if not waiting.answer.done():
        waiting.answer.set_result(answer)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
