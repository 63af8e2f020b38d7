"""A reply that does not come to an end: how much of it is read, and that nobody else waits for it meanwhile."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from coatcheck.core.events import Accepted, Doubted
from coatcheck.core.operation import RemoteJobId
from coatcheck.provider.reply import FRAMED_LIMIT, INTERIM_LIMIT
from coatcheck.seams import Seams
from provider.rawserver import Peer, Play, RawServer, answering, reply_of
from provider.sending import DISPATCH, Posted, request_to, send

ACCEPTED = reply_of(b'{"job_id":"job-1"}')


def posted(play: Play, *, seams: Seams | None = None) -> Posted:
    async def run() -> Posted:
        async with RawServer(play) as server:
            return await send(request_to(server.url), seams=seams)

    return asyncio.run(run())


def test_interim_replies_without_end_are_no_answer() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        gone = asyncio.ensure_future(peer.gone())
        while not gone.done():
            with suppress(ConnectionError):
                await peer.send(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)
            await asyncio.wait([gone], timeout=0.001)

    assert posted(play).reply == Doubted(dispatch_id=DISPATCH, cause="malformed_reply")
    assert posted(answering(b"HTTP/1.1 102 Processing\r\n\r\n" * INTERIM_LIMIT + ACCEPTED)).exchange.complete


def test_a_body_whose_chunks_tell_more_than_they_bring_is_not_read_on() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        gone = asyncio.ensure_future(peer.gone())
        while not gone.done():
            with suppress(ConnectionError):
                await peer.send(b"1;" + b"x" * 60_000 + b"\r\n \r\n")
            await asyncio.wait([gone], timeout=0.001)

    result = posted(play)
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="too_large")
    assert result.exchange.bytes_received < 2 * FRAMED_LIMIT


def test_others_have_their_turn_while_a_long_reply_comes_in() -> None:
    turns: list[float] = []

    async def pausing(seconds: float) -> None:
        turns.append(seconds)
        await asyncio.sleep(0)

    long = reply_of(b'{"job_id":"job-1","x":"%b"}' % (b"x" * 900_000))
    result = posted(answering(long), seams=replace(Seams.real(), sleep=pausing))
    assert result.reply == Accepted(dispatch_id=DISPATCH, remote_job_id=RemoteJobId("job-1"))
    assert set(turns) == {0}
