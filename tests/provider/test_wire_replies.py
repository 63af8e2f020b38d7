"""The reply to the one POST, over real sockets: what counts as whole, and what every cut of it leaves behind."""

import asyncio
import gzip
import os
from dataclasses import replace
from itertools import product

import pytest

from coatcheck.core.events import Accepted, Doubted, FailedWithId, Rejected
from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.core.operation import RemoteJobId
from coatcheck.seams import Point, Seams
from provider.rawserver import Peer, Play, RawServer, answering, reply_of
from provider.sending import DISPATCH, Posted, Recorder, not_sent, request_to, send, watched

ACCEPTED = reply_of(b'{"job_id":"job-1","status":"queued"}')
ID = RemoteJobId("job-1")


def doubt(cause: str, result: Posted) -> Doubted:
    """The doubt of `result`: it names the id as a candidate exactly when the literal is whole in the body that came."""
    return Doubted(dispatch_id=DISPATCH, cause=cause, candidate=ID if b'"job-1"' in result.exchange.body else None)


def posted(play: Play, *, seams: Seams | None = None, limit_s: float = 10.0, body: bytes = b"{}") -> Posted:
    async def run() -> Posted:
        async with RawServer(play) as server:
            result = await send(request_to(server.url, body=body), seams=seams, limit_s=limit_s)
            await server.idle()
            assert len(server.peers) == 1
            return result

    return asyncio.run(run())


def test_a_whole_reply_passes_every_stage_and_every_byte_is_counted() -> None:
    async def run() -> tuple[Exchange, bytes]:
        async with RawServer(answering(ACCEPTED)) as server:
            result = await send(request_to(server.url))
            assert result.reply == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)
            await server.idle()
            (peer,) = server.peers
            return result.exchange, bytes(peer.received)

    exchange, request = asyncio.run(run())
    assert exchange.complete
    assert exchange.failure is None
    assert exchange.bytes_sent == len(request)
    assert exchange.bytes_received == len(ACCEPTED)
    stages = [stage for stage, _ in exchange.marks_ms]
    assert stages == [stage for stage in Stage if stage is not Stage.TLS]
    head, _, body = request.partition(b"\r\n\r\n")
    assert body == b'{"prompt":"a red bird"}'
    assert head.startswith(b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nConnection: close" in head
    assert b"\r\nContent-Length: 23" in head


def test_what_is_kept_of_one_head_reaches_no_other_request() -> None:
    courses = list(product(("a", "b"), ("old", "new"), ("1", "2"), (9, 0, 1000, 10)))

    async def run() -> None:
        async with RawServer(answering(ACCEPTED)) as server:
            for account, key, reference, length in [*courses, *reversed(courses)]:
                headers = (("Authorization", f"Bearer {account}-{key}"), ("X-Client-Reference", reference))
                request = Request(method="POST", url=f"{server.url}/{account}", headers=headers, body=b"x" * length)
                assert (await send(request)).exchange.complete
                await server.idle()
                head = (
                    f"POST /{account} HTTP/1.1\r\nHost: {server.url.removeprefix('http://')}\r\n"
                    f"Authorization: Bearer {account}-{key}\r\nX-Client-Reference: {reference}\r\n"
                    f"Connection: close\r\nContent-Length: {length}\r\n\r\n"
                )
                assert bytes(server.peers[-1].received) == head.encode() + request.body

    asyncio.run(run())


@pytest.mark.parametrize(
    "header",
    [
        *(
            ("Content-Length", "3"),
            ("Content-Length", "0"),
            ("transfer-encoding", "chunked"),
            ("Transfer-Encoding", "identity"),
        ),
        *(("X", "a\r\nb: c"), ("X\r\nb", "c"), ("X", "\0"), ("", "x")),
    ],
)
def test_a_head_that_would_say_something_else_than_it_should_is_not_sent(header: tuple[str, str]) -> None:
    async def run() -> None:
        async with RawServer(answering(ACCEPTED)) as server:
            for _ in range(2):
                asked = request_to(server.url)
                result = await send(replace(asked, headers=(*asked.headers, header)))
                assert result.reply == not_sent("bad_request")
            assert not server.peers

    asyncio.run(run())


def test_the_points_of_the_course_are_passed_in_order() -> None:
    recorder = Recorder()
    result = posted(answering(ACCEPTED), seams=watched(Seams.real(), recorder))
    points = list(dict.fromkeys(point for point, _ in recorder.seen))
    assert points == [
        Point.D6_CONNECTING,
        Point.D7_REQUEST_BYTES,
        Point.D8_REQUEST_COMPLETE,
        Point.D9_RESPONSE_BYTES,
        Point.D10_RESPONSE_COMPLETE,
    ]
    assert (Point.D7_REQUEST_BYTES, result.exchange.bytes_sent) in recorder.seen
    assert (Point.D9_RESPONSE_BYTES, len(ACCEPTED)) in recorder.seen


@pytest.mark.parametrize("ending", ["fin", "rst"])
def test_a_reply_cut_at_any_byte_is_doubt_and_never_an_answer(ending: str) -> None:
    async def run() -> list[Posted]:
        cuts = iter(range(len(ACCEPTED)))

        async def play(peer: Peer) -> None:
            await peer.request()
            await peer.send(ACCEPTED[: next(cuts)])
            peer.close() if ending == "fin" else peer.reset()

        async with RawServer(play) as server:
            results = [await send(request_to(server.url)) for _ in ACCEPTED]
            assert len(server.peers) == len(ACCEPTED)
            return results

    results = asyncio.run(run())
    assert len(results) > 40
    head = ACCEPTED.index(b"\r\n\r\n") + 4
    for cut, result in enumerate(results):
        assert isinstance(result.reply, Doubted), cut
        assert result.reply.cause == ("closed" if ending == "fin" else "reset"), cut
        assert not result.exchange.complete
        assert result.exchange.bytes_received == cut
        assert result.exchange.status == (202 if cut >= head else None)
        assert result.exchange.body == ACCEPTED[head:cut]


def test_a_reply_that_stalls_at_any_byte_ends_at_the_limit() -> None:
    async def run() -> list[Posted]:
        cuts = iter(range(0, len(ACCEPTED), 2))

        async def play(peer: Peer) -> None:
            await peer.request()
            await peer.send(ACCEPTED[: next(cuts)])
            await peer.gone()

        async with RawServer(play) as server:
            count = len(range(0, len(ACCEPTED), 2))
            results = await asyncio.gather(*(send(request_to(server.url), limit_s=0.6) for _ in range(count)))
            await server.idle()
            assert all(peer.reset_by_client for peer in server.peers)
            return results

    results = asyncio.run(run())
    assert len(results) >= 40
    assert [result.reply for result in results] == [doubt("timeout", result) for result in results]
    assert {result.reply.candidate for result in results if isinstance(result.reply, Doubted)} == {None, ID}


def test_a_reset_after_the_whole_reply_is_no_failure() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(ACCEPTED)
        peer.reset()

    assert posted(play).reply == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)


def test_a_body_that_trickles_in_is_bounded_by_the_limit_of_the_whole_post() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\n")
        gone = asyncio.ensure_future(peer.gone())
        while not gone.done():
            await peer.send(b" ")
            await asyncio.wait([gone], timeout=0.02)

    result = posted(play, limit_s=0.4)
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="timeout")
    assert result.exchange.status == 202
    assert 0 < len(result.exchange.body) < 1000


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_is_never_followed(status: str) -> None:
    async def run() -> tuple[Posted, int]:
        async with RawServer(answering(ACCEPTED)) as other:
            headers = f"Location: {other.url}/api/v1/jobs\r\n"
            async with RawServer(answering(reply_of(b"", status=status, headers=headers))) as server:
                return await send(request_to(server.url)), len(other.peers)

    result, followed = asyncio.run(run())
    assert result.reply == Rejected(dispatch_id=DISPATCH, status=int(status[:3]))
    assert followed == 0


def test_interim_replies_are_not_the_reply() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    result = posted(answering(interim + ACCEPTED))
    assert result.reply == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)
    assert result.exchange.status == 202


def test_an_interim_reply_alone_is_no_answer() -> None:
    result = posted(answering(b"HTTP/1.1 100 Continue\r\n\r\n"))
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="closed")
    assert result.exchange.status is None


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5\r\n{"job\r\n10\r\n_id": "job-1"}  \r\n0\r\nX-Trailer: 1\r\n\r\n'
)


def test_a_chunked_reply_is_whole_at_its_last_chunk() -> None:
    assert posted(answering(CHUNKED)).reply == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)


def test_a_chunked_reply_without_its_last_chunk_is_cut_although_the_json_is_finished() -> None:
    result = posted(answering(CHUNKED[: CHUNKED.index(b"0\r\nX-")]))
    assert result.exchange.body == b'{"job_id": "job-1"}  '
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="closed", candidate=ID)


def test_finished_json_in_a_body_shorter_than_its_length_is_cut() -> None:
    result = posted(answering(b'HTTP/1.1 202 Accepted\r\nContent-Length: 30\r\n\r\n{"job_id":"job-1"}'))
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="closed", candidate=ID)


@pytest.mark.parametrize("ending", ["fin", "rst"])
def test_a_body_that_the_end_delimits_is_whole_only_by_an_orderly_end(ending: str) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(b'HTTP/1.0 200 OK\r\n\r\n{"job_id":"job-1"}')
        peer.close() if ending == "fin" else peer.reset()

    result = posted(play)
    accepted = Accepted(dispatch_id=DISPATCH, remote_job_id=ID)
    assert result.reply == (accepted if ending == "fin" else doubt("reset", result))


UNFRAMED = b"HTTP/1.1 422 Unprocessable Content\r\nConnection: close\r\n\r\n"
FAILED = b'{"error":{"job_id":"job-1","code":"bad_size"}}'


def test_a_refusal_without_a_length_is_doubt_wherever_an_orderly_end_cuts_it() -> None:
    async def run() -> list[Posted]:
        cuts = iter(range(1, len(FAILED)))

        async def play(peer: Peer) -> None:
            await peer.request()
            await peer.send(UNFRAMED + FAILED[: next(cuts)])

        async with RawServer(play) as server:
            return [await send(request_to(server.url)) for _ in FAILED[1:]]

    for result in asyncio.run(run()):
        assert result.exchange.complete
        assert not result.exchange.framed
        assert result.reply == doubt("unframed", result)


@pytest.mark.parametrize("body", [b"", b'{"error":{"code":"bad_size"}}'])
def test_a_refusal_without_a_length_is_read_by_its_status_when_it_is_empty_or_whole_json(body: bytes) -> None:
    result = posted(answering(UNFRAMED + body))
    assert result.reply == Rejected(dispatch_id=DISPATCH, status=422)
    assert not result.exchange.framed


def test_a_refusal_without_a_length_that_names_its_job_is_kept() -> None:
    assert posted(answering(UNFRAMED + FAILED)).reply == FailedWithId(dispatch_id=DISPATCH, remote_job_id=ID)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 422 No\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.0 422 No\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 422 No\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n<html>\r\n0\r\n\r\n",
        b"HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["length", "old", "chunks", "empty"],
)
def test_a_refusal_whose_length_or_chunks_tell_its_end_needs_no_json(reply: bytes) -> None:
    result = posted(answering(reply))
    assert result.exchange.framed
    assert result.reply == Rejected(dispatch_id=DISPATCH, status=422)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP"])
def test_a_compressed_reply_that_nobody_asked_for_still_names_its_job(coding: str) -> None:
    packed = gzip.compress(b'{"job_id":"job-1"}')
    result = posted(answering(reply_of(packed, headers=f"Content-Encoding: {coding}\r\n")))
    assert result.reply == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(b'{"job_id":"job-1"}')[:-6],
        gzip.compress(b'{"job_id":"job-1"}') + b"more",
        b"not gzip",
        gzip.compress(b" " * (8 << 20)),
    ],
    ids=["cut", "trailing", "broken", "bomb"],
)
def test_a_coding_that_cannot_be_undone_within_bounds_is_doubt(packed: bytes) -> None:
    result = posted(answering(reply_of(packed, headers="Content-Encoding: gzip\r\n")))
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="undecodable")
    assert result.exchange.status == 202
    assert result.exchange.body == packed


def test_a_body_beyond_the_bound_is_not_read_on() -> None:
    result = posted(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b" " * 9_000_000))
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="too_large")
    assert len(result.exchange.body) == 1 << 20


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\x00" * 300,
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n{}",
        os.urandom(4096),
    ],
    ids=["ssh", "zeros", "status", "length", "lengths", "chunk", "switch", "long_header", "noise"],
)
def test_an_answer_that_is_no_http_is_doubt(garbage: bytes) -> None:
    result = posted(answering(garbage))
    assert isinstance(result.reply, Doubted)
    assert result.reply.cause in {"malformed_reply", "closed", "reset"}


def test_a_failure_that_names_its_job_is_kept() -> None:
    reply = reply_of(b'{"error":{"job_id":"job-1","code":"upstream"}}', status="502 Bad Gateway")
    assert posted(answering(reply)).reply == FailedWithId(dispatch_id=DISPATCH, remote_job_id=ID)


@pytest.mark.parametrize("closes", [True, False], ids=["closing", "waiting"])
def test_an_early_refusal_ends_the_upload_and_is_respected(closes: bool) -> None:
    async def play(peer: Peer) -> None:
        await peer.take(10_000)
        await peer.send(reply_of(b"{}", status="413 Content Too Large"))
        if not closes:
            await peer.gone()

    body = b"x" * (24 << 20)
    result = posted(play, body=body)
    assert result.reply == Rejected(dispatch_id=DISPATCH, status=413)
    assert 0 < result.exchange.bytes_sent < len(body)
