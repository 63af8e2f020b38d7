"""The one POST cut after every byte of its request and of its reply, in every way in which a connection ends: one POST each, the right
phase each. The service's own ledger is the judge, and the real adapter and table of phases say what each end means."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Phase, RemoteJobId
from coatcheck.core.steps import ConcludeStep
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Seams
from coatcheck.sim import PostRecord, ThreadedService, simulated_service
from core.operations import operation_in
from figures import Report, Scale
from provider.cutter import Cut, Cutter, End, Side
from provider.genaces import genace
from provider.sending import TLS

LINES = 16
LIMIT_S = 10.0
STALL_S = 0.25
"""The limit of a POST that meets silence; many are under way at once."""
SEAMS = Seams.real()
HEADERS_END = b"\r\n\r\n"


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


class Sweep:
    """Exchanges of one service, each under a dispatch and with a text of its own."""

    def __init__(self, sim: ThreadedService) -> None:
        self.sim = sim
        self._count = 0

    def text(self) -> bytes:
        self._count += 1
        return json.dumps({"prompt": f"a red bird {self._count:06d}"}).encode()

    async def played(self, line: Cutter, cut: Cut | None, text: bytes) -> tuple[Exchange, ev.Reply, DispatchId]:
        """One POST through the line, and what the adapter makes of its end."""
        line.cut, line.connections = cut, 0
        dispatch_id = DispatchId(UUID(int=self._count))
        adapter = genace(base_url=line.url)
        limit_s = STALL_S if cut is not None and cut.end is End.STALL else LIMIT_S
        exchange = await post(
            adapter.create(text, dispatch_id=dispatch_id),
            window=SendWindow(send_by=SEAMS.clock.boottime() + limit_s, limit_s=limit_s),
            progress=Progress(SEAMS.clock),
            tls=TLS,
            seams=SEAMS,
        )
        await line.idle()
        assert line.connections <= 1, cut
        return exchange, adapter.reply(exchange, dispatch_id=dispatch_id, now=datetime.now(UTC)), dispatch_id

    async def sizes(self) -> tuple[bytes, bytes]:
        """A request and a reply that nobody cuts: all others are as long."""
        async with Cutter(urlsplit(self.sim.base_url).port or 0) as line:
            _, reply, _ = await self.played(line, None, self.text())
            assert isinstance(reply, ev.Accepted)
            return line.request, line.reply

    async def all_of(self, cuts: Sequence[Cut], reply: bytes) -> None:
        """Every cut on one of a few lines, each judged as soon as it is over."""
        left = iter(cuts)

        async def course() -> None:
            async with Cutter(urlsplit(self.sim.base_url).port or 0) as line:
                for cut in left:
                    text = self.text()
                    exchange, said, dispatch_id = await self.played(line, cut, text)
                    judged(cut, exchange, said, reply)
                    assert phase_after(said, dispatch_id) == phase_of(said), cut
                    ends.append((cut, text, said))

        ends: list[tuple[Cut, bytes, ev.Reply]] = []
        before = len(self.sim.posts)
        await asyncio.gather(*(course() for _ in range(LINES)))
        assert len(ends) == len(cuts) >= len(self.sim.posts) - before
        self.are_in_the_ledger(ends)

    def are_in_the_ledger(self, ends: Sequence[tuple[Cut, bytes, ev.Reply]]) -> None:
        """At most one POST of each text arrived, whole where nothing of it was kept back; what was accepted is its job."""
        whole: dict[str | None, list[PostRecord]] = {}
        for record in self.sim.posts:
            if record.complete:
                whole.setdefault(record.body_text, []).append(record)
        for cut, text, said in ends:
            found = whole.get(text.decode(), [])
            assert len(found) <= 1, cut
            if isinstance(said, ev.Accepted):
                assert said.remote_job_id == found[0].created, cut
            if cut.side is Side.REPLY and cut.end is not End.STALL:
                assert found, cut
            if isinstance(said, ev.NotSent):
                assert not found, cut


def offsets(exchange: bytes, every: int) -> list[int]:
    """After every so many bytes, and always around what a reader of the exchange may trip over."""
    head = exchange.index(HEADERS_END) + len(HEADERS_END)
    edges = {0, 1, head - 1, head, head + 1, len(exchange) - 1, len(exchange)}
    return sorted(edges | set(range(0, len(exchange), every)))


def judged(cut: Cut, exchange: Exchange, said: ev.Reply, reply: bytes) -> None:
    """Nothing handed to the kernel is not sent, a whole reply counts, all else is doubt; the stage says how far it came."""
    assert isinstance(said, ev.NotSent) == (exchange.bytes_sent == 0), cut
    if exchange.bytes_sent == 0:
        assert (cut.side, cut.at) == (Side.REQUEST, 0) or cut.end is End.STALL, cut
        return
    here = exchange.bytes_received
    if cut.side is Side.REQUEST:
        assert isinstance(said, ev.Doubted), cut
        assert exchange.stage in {Stage.HEADERS_BEGUN, Stage.BODY_SENT}, cut
    elif cut.end is not End.STALL:
        assert here == cut.at or cut.end is End.GARBAGE, cut
    if cut.side is Side.REPLY:
        # silence may come earlier on a busy machine, never later
        came = min(here, cut.at)
        assert isinstance(said, ev.Accepted) == (came == len(reply)), cut
        assert isinstance(said, ev.Accepted | ev.Doubted), cut
        assert exchange.stage in stages_at(came, reply, cut.end), cut
    if cut.end is End.STALL and isinstance(said, ev.Doubted):
        assert said.cause == "timeout", cut


def stages_at(came: int, reply: bytes, end: End) -> set[Stage]:
    if came < reply.index(HEADERS_END) + len(HEADERS_END):
        return {Stage.BODY_SENT}
    if came == len(reply):
        return {Stage.BODY_RECEIVED}
    # a body as long as announced is whole, whatever its bytes are
    return {Stage.STATUS_RECEIVED, Stage.BODY_RECEIVED} if end is End.GARBAGE else {Stage.STATUS_RECEIVED}


def phase_of(said: ev.Reply) -> Phase:
    match said:
        case ev.NotSent():
            return Phase.PREPARED
        case ev.Accepted():
            return Phase.ACCEPTED
        case _:
            return Phase.UNCERTAIN


def phase_after(said: ev.Reply, dispatch_id: DispatchId) -> Phase | None:
    """What the table makes of an operation that is dispatching."""
    operation = operation_in(Phase.DISPATCHING, dispatch_id=dispatch_id)
    step = advance(operation, said, operation.read_at)
    assert isinstance(step, ConcludeStep)
    return step.phase


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("side", "framing"),
    [(Side.REQUEST, None), (Side.REPLY, None), (Side.REPLY, "chunked")],
    ids=["request", "reply", "chunked reply"],
)
def test_a_post_cut_after_any_byte_is_one_post_and_ends_in_the_right_phase(
    sim: ThreadedService, side: Side, framing: str | None, figures: Report, lab_scale: Scale
) -> None:
    sweep = Sweep(sim)
    sim.script([] if framing is None else [{"on": "create", "kind": framing}])

    async def run() -> int:
        request, reply = await sweep.sizes()
        places = offsets(request if side is Side.REQUEST else reply, lab_scale(ci=4, lab=1))
        cuts = [Cut(side=side, at=at, end=end) for end in End for at in places]
        await sweep.all_of(cuts, reply)
        return len(cuts)

    figures("wire cuts", asyncio.run(run()))


def test_the_sweep_would_see_a_second_post(sim: ThreadedService) -> None:
    """Its judges are themselves judged: a sender that sends the same text again, and an adapter that takes doubt for something else."""
    sweep = Sweep(sim)
    cut = Cut(side=Side.REPLY, at=10, end=End.FIN)

    async def run() -> tuple[Exchange, ev.Reply, bytes]:
        text = sweep.text()
        async with Cutter(urlsplit(sim.base_url).port or 0) as line:
            await sweep.played(line, cut, text)
            exchange, said, _ = await sweep.played(line, cut, text)
            await sweep.played(line, None, text)
            with pytest.raises(AssertionError):
                sweep.are_in_the_ledger([(cut, text, said)])
            return exchange, said, line.reply

    exchange, said, reply = asyncio.run(run())
    judged(cut, exchange, said, reply)
    for lie in (
        ev.Accepted(dispatch_id=said.dispatch_id, remote_job_id=RemoteJobId("job-1")),
        ev.NotSent(dispatch_id=said.dispatch_id, cause="reset"),
        ev.Rejected(dispatch_id=said.dispatch_id, status=400),
    ):
        with pytest.raises(AssertionError):
            judged(cut, exchange, lie, reply)
