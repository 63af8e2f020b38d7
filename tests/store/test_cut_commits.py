"""The commit of a mark and of a conclusion, cut at every byte of the request and of the reply: no mark is trusted, no id is lost.

Each statement is a transaction of its own, so its exchange is its commit. The same at the level of a whole worker, with its POSTs counted,
is in tests/faults/test_unknown_marks.py.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

import pytest

from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId
from coatcheck.core.steps import Step
from coatcheck.store import db
from coatcheck.store.committer import Committer
from coatcheck.store.db import Database
from coatcheck.store.door import ConcludeSave, MarkSave, Save, Saved, Status
from coatcheck.store.operations import load
from faults.proxy import Cut, End, Proxy, Side, cutting
from figures import Report
from store.ground import ACCOUNT, Ground
from store.test_committer_on_a_server import lanes

MARK, CONCLUDE = b'commit "may be sent from now on"', b"the end of a batch of POSTs"
"""The words by which the statements are known."""
WAYS = [(End.FIN, 1), (End.RST, 10)]
"""How the client learns of it, and at every how manyeth byte."""
MANY = 300
"""Fewer bytes than that no exchange has."""


PLANNED_ONCE = "&options=-c%20plan_cache_mode%3Dforce_generic_plan"
"""Every connection of these stories lives for a few statements; to plan those for their parameters each time takes most of the time."""


class Line:
    """A committer whose connection leads through a proxy; a cut befalls the one exchange that the test announces."""

    def __init__(self, ground: Ground, url: str) -> None:
        self._database = Database(url + PLANNED_ONCE, seams=ground.seams, name="line")
        self._made = Committer(lanes(self._database), seams=replace(ground.seams, sleep=_no_pause))

    async def save(self, save: Save) -> Saved:
        """Write one step."""
        saved: Saved = await self._made.save(save)
        return saved

    async def close(self) -> None:
        await self._made.close()
        await self._database.close()


async def _no_pause(seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine's statement would be followed by another one than the test counts on."""
    monkeypatch.setattr(db, "SLOW_S", inf)
    monkeypatch.setattr(db, "GENERIC_SLOW_S", inf)


def steps_of(ground: Ground, events: dict[OperationId, ev.Event]) -> list[Step]:
    """What the table makes of one event for each operation, read in one go."""
    operations = ground.run(load(ground.line, list(events)))
    steps = [advance(operations[each], event, operations[each].read_at) for each, event in events.items()]
    assert all(isinstance(step, Step) for step in steps)
    return [step for step in steps if isinstance(step, Step)]


def marks_of(ground: Ground, operation_ids: Sequence[OperationId]) -> list[Save]:
    marks = {each: ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT) for each in operation_ids}
    return [ground.as_save(step) for step in steps_of(ground, dict(marks))]


def conclusions_of(ground: Ground, operation_ids: Sequence[OperationId]) -> list[Save]:
    """Ends of POSTs under marks that are there."""
    marks = marks_of(ground, operation_ids)
    for at in range(0, len(marks), 500):
        assert all(saved.applied for saved in ground.write(marks[at : at + 500]))
    marked = ground.run(load(ground.line, list(operation_ids)))
    accepted = {
        each: ev.Accepted(dispatch_id=operation.dispatch_id, remote_job_id=RemoteJobId(f"job-{each}"))
        for each, operation in marked.items()
        if operation.dispatch_id is not None
    }
    return [ground.as_save(step, marked=marked[step.operation_id]) for step in steps_of(ground, dict(accepted))]


def places(proxy: Proxy, end: End, every: int) -> list[Cut]:
    """A cut after each byte but the reply's last; of a whole request the reply is not waited for."""
    request_bytes, reply_bytes = proxy.sizes[-1]
    return [
        *(Cut(side=Side.REQUEST, at_bytes=at, end=end) for at in {*range(0, request_bytes, every), request_bytes}),
        *(Cut(side=Side.REPLY, at_bytes=at, end=end) for at in range(0, reply_bytes, every)),
    ]


def played(ground: Ground, kind: type[Save], end: End, every: int) -> list[tuple[Cut, OperationId, Saved]]:
    """Save one step after the other, each cut at another byte, and tell what was answered."""
    announced: deque[Cut] = deque()
    marker, make = (MARK, marks_of) if kind is MarkSave else (CONCLUDE, conclusions_of)

    async def probe(save: Save) -> None:
        line = Line(ground, url)
        await line.save(save)
        await line.close()

    async def story(saves: Sequence[Save]) -> list[Saved]:
        line = Line(ground, url)
        answers = []
        for cut, save in zip(cuts, saves, strict=True):
            announced.append(cut)
            answers.append(await line.save(save))
            assert not announced
        await line.close()
        return answers

    with cutting(ground.database.url, marker, _announced(announced), by_tcp=end is End.RST) as (proxy, url):
        asyncio.run(probe(*make(ground, [ground.enqueue("probe")])))
        cuts = places(proxy, end, every)
        enqueued = ground.enqueue_many(len(cuts))
        answers = asyncio.run(story(make(ground, enqueued)))
        assert proxy.cut_count == len(cuts) >= MANY // every
    return list(zip(cuts, enqueued, answers, strict=True))


def _announced(cuts: deque[Cut]) -> Iterator[Cut | None]:
    while True:
        yield cuts.popleft() if cuts else None


def was_executed(cut: Cut, request_bytes: int) -> bool:
    return cut.side is Side.REPLY or cut.at_bytes == request_bytes


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("end", "every"), WAYS)
def test_a_mark_cut_at_any_byte_is_trusted_nowhere_and_found_wherever_it_was_committed(
    ground: Ground, end: End, every: int, figures: Report
) -> None:
    answers = played(ground, MarkSave, end, every)
    figures("commit cuts", len(answers))
    assert {saved.status for _, _, saved in answers} == {Status.UNKNOWN}
    whole_request = max(cut.at_bytes or 0 for cut, _, _ in answers if cut.side is Side.REQUEST)
    for cut, operation_id, saved in answers:
        assert saved.revision == (1 if was_executed(cut, whole_request) else None), cut
        operation = ground.operation(operation_id)
        assert operation.phase == ("prepared" if saved.revision is None else "dispatching"), cut
        assert len(ground.all("dispatches", operation_id)) == operation.revision == (saved.revision or 0), cut


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("end", "every"), WAYS)
def test_a_conclusion_cut_at_any_byte_takes_effect_once(ground: Ground, end: End, every: int, figures: Report) -> None:
    answers = played(ground, ConcludeSave, end, every)
    figures("commit cuts", len(answers))
    assert {(saved.status, saved.revision) for _, _, saved in answers} == {(Status.APPLIED, 2)}
    for cut, operation_id, _ in answers:
        operation = ground.operation(operation_id)
        assert (operation.phase, operation.revision) == ("accepted", 2), cut
        assert operation.remote_job_id == f"job-{operation_id}", cut
        assert len(ground.all("remote_jobs", operation_id)) == 1
        assert ground.all("incidents", operation_id) == []
