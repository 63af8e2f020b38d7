"""The one POST under TLS: a handshake sends nothing, a record counts from its first byte, and an end without notice is a cut."""

import asyncio
from dataclasses import replace

import pytest

from coatcheck.core.events import Accepted, Doubted, NotSent
from coatcheck.core.evidence import Stage
from coatcheck.core.operation import RemoteJobId
from coatcheck.seams import Point, Seams
from provider.certificates import server_side, trusting
from provider.rawserver import Peer, Play, RawServer, answering, reply_of
from provider.sending import DISPATCH, MovedClock, Posted, Resolving, Stride, request_to, send

ACCEPTED = reply_of(b'{"job_id":"job-1"}')
OK = Accepted(dispatch_id=DISPATCH, remote_job_id=RemoteJobId("job-1"))
LARGE = b"x" * (24 << 20)


def posted(play: Play, *, body: bytes = b"{}", limit_s: float = 10.0) -> tuple[Posted, Peer]:
    async def run() -> tuple[Posted, Peer]:
        async with RawServer(play, tls=server_side()) as server:
            result = await send(request_to(server.url, body=body), tls=trusting(), limit_s=limit_s)
            await server.idle()
            (peer,) = server.peers
            return result, peer

    return asyncio.run(run())


@pytest.mark.parametrize("size", [2, 16_384, 16_385, 1_000_000])
def test_a_reply_under_tls_is_read_and_plaintext_is_counted(size: int) -> None:
    result, peer = posted(answering(ACCEPTED), body=b"x" * size)
    assert result.reply == OK
    assert result.exchange.bytes_sent == len(peer.received)
    assert peer.received.endswith(b"\r\n\r\n" + b"x" * size)
    assert result.exchange.bytes_received == len(ACCEPTED)
    assert [stage for stage, _ in result.exchange.marks_ms] == list(Stage)


def test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent() -> None:
    async def run() -> Posted:
        async with RawServer(Peer.gone, tls=server_side()) as server:
            return await send(request_to(server.url))

    result = asyncio.run(run())
    assert result.reply == NotSent(dispatch_id=DISPATCH, cause="certificate_refused")
    assert result.exchange.stage is Stage.TLS


def test_a_certificate_for_another_name_is_refused_before_anything_is_sent() -> None:
    async def run() -> Posted:
        async with RawServer(Peer.gone, tls=server_side()) as server:
            seams = replace(Seams.real(), connect=Resolving(("127.0.0.1", server.port)))
            return await send(request_to("https://service.example"), seams=seams, tls=trusting())

    assert asyncio.run(run()).reply == NotSent(dispatch_id=DISPATCH, cause="certificate_refused")


def test_a_service_that_speaks_no_tls_gets_nothing() -> None:
    async def play(peer: Peer) -> None:
        await peer.take(5)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def talk() -> tuple[Posted, bytes]:
        async with RawServer(play) as server:
            url = server.url.replace("http://127.0.0.1", "https://localhost")
            result = await send(request_to(url, body=b"the-specification"), tls=trusting())
            await server.idle()
            return result, bytes(server.peers[0].received)

    result, received = asyncio.run(talk())
    assert result.reply == NotSent(dispatch_id=DISPATCH, cause="tls_failed")
    assert b"the-specification" not in received


@pytest.mark.parametrize("ending", ["fin", "rst", "hang"])
def test_a_handshake_that_does_not_end_is_proof_that_nothing_was_sent(ending: str) -> None:
    async def play(peer: Peer) -> None:
        await peer.take(5)
        match ending:
            case "fin":
                peer.close()
            case "rst":
                peer.reset()
            case _:
                await peer.gone()

    async def run() -> Posted:
        async with RawServer(play) as server:
            url = server.url.replace("http://127.0.0.1", "https://localhost")
            return await send(request_to(url), tls=trusting(), send_s=0.5)

    reply = asyncio.run(run()).reply
    assert isinstance(reply, NotSent)
    assert reply.cause in ({"connect_timeout"} if ending == "hang" else {"tls_failed", "unreachable"})


def test_a_process_that_slept_past_the_window_before_the_handshake_sends_nothing() -> None:
    clock = MovedClock()
    seams = replace(Seams.real(), clock=clock, faults=Stride(clock, Point.D6_CONNECTING, 5.5))

    async def run() -> tuple[Posted, bytes]:
        async with RawServer(Peer.gone, tls=server_side()) as server:
            result = await send(request_to(server.url), seams=seams, tls=trusting())
            await server.idle()
            return result, b"".join(peer.received for peer in server.peers)

    result, received = asyncio.run(run())
    assert isinstance(result.reply, NotSent)
    assert received == b""


@pytest.mark.parametrize("ending", ["close", "abort", "reset"])
def test_a_reply_cut_under_tls_is_doubt(ending: str) -> None:
    cuts = range(1, len(ACCEPTED), 3)

    async def run() -> list[Posted]:
        left = iter(cuts)

        async def play(peer: Peer) -> None:
            await peer.request()
            await peer.send(ACCEPTED[: next(left)])
            getattr(peer, ending)()

        async with RawServer(play, tls=server_side()) as server:
            tls = trusting()
            return [await send(request_to(server.url), tls=tls) for _ in cuts]

    for cut, result in zip(cuts, asyncio.run(run()), strict=True):
        assert isinstance(result.reply, Doubted), cut
        # A reset may overtake the last record: the server's kernel drops what was not acknowledged.
        assert result.exchange.bytes_received in ({0, cut} if ending == "reset" else {cut})


@pytest.mark.parametrize(("ending", "whole"), [("close", True), ("abort", False)])
def test_a_body_that_the_end_delimits_needs_the_close_notice(ending: str, whole: bool) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(b'HTTP/1.0 200 OK\r\n\r\n{"job_id":"job-1"}')
        getattr(peer, ending)()

    result, _ = posted(play)
    assert result.reply == (OK if whole else Doubted(dispatch_id=DISPATCH, cause="closed", candidate=OK.remote_job_id))


def test_a_stalled_upload_under_tls_ends_at_the_limit() -> None:
    async def play(peer: Peer) -> None:
        await peer.take(100_000)
        await asyncio.wait_for(over.wait(), 10)

    over = asyncio.Event()

    async def run() -> Posted:
        async with RawServer(play, tls=server_side()) as server:
            result = await send(request_to(server.url, body=LARGE), tls=trusting(), limit_s=1.5)
            over.set()
            return result

    result = asyncio.run(run())
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="timeout")
    assert 100_000 <= result.exchange.bytes_sent < len(LARGE)
