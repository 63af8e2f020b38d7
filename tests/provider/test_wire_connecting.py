"""The way to the first byte of the one POST: whatever fails on it proves that the service got nothing."""

import asyncio
import socket
from dataclasses import replace

import pytest

from coatcheck.core.events import Accepted, Doubted
from coatcheck.core.evidence import Request, Stage
from coatcheck.core.operation import RemoteJobId
from coatcheck.seams import Faults, Point, Seams
from provider.rawserver import Peer, RawServer, answering, reply_of
from provider.sending import DISPATCH, Posted, Resolving, free_port, not_sent, request_to, send, watched

ACCEPTED = reply_of(b'{"job_id":"job-1"}')


def test_a_refused_connection_is_proof_that_nothing_was_sent() -> None:
    result = asyncio.run(send(request_to(f"http://127.0.0.1:{free_port()}")))
    assert result.reply == not_sent("refused")
    assert result.exchange.bytes_sent == 0
    assert result.exchange.stage is Stage.CONNECTING


def test_an_unknown_name_is_proof_that_nothing_was_sent() -> None:
    seams = replace(Seams.real(), connect=Resolving())
    result = asyncio.run(send(request_to("http://service.invalid"), seams=seams))
    assert result.reply == not_sent("name_unknown")
    assert result.exchange.stage is Stage.RESOLVING


def test_a_fault_before_connecting_is_none_of_the_network() -> None:
    class Breaking(Faults):
        def reached(self, point: Point, count: int = 0) -> None:
            passed.append(point)
            raise OSError("a full disk, for example")

    passed: list[Point] = []
    with pytest.raises(OSError, match="full disk"):
        asyncio.run(send(request_to("http://127.0.0.1"), seams=watched(Seams.real(), Breaking())))
    assert passed == [Point.D6_CONNECTING]


def test_a_full_accept_queue_is_proof_that_nothing_was_sent() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for filler in waiting:
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        result = asyncio.run(send(request_to(url), send_s=0.3))
        for filler in waiting:
            filler.close()
    assert result.reply == not_sent("connect_timeout")


@pytest.mark.parametrize(
    "request_",
    [
        Request(method="POST", url="ftp://127.0.0.1/x"),
        Request(method="POST", url="http://[::1/x"),
        Request(method="POST", url="http://127.0.0.1:99999/x"),
        Request(method="POST", url="http://127.0.0.1/x", headers=(("X-Key", "a\r\nX-Other: b"),)),
        Request(method="POST", url="http://127.0.0.1/a b"),
        Request(method="PUT", url="http://127.0.0.1/x"),
    ],
    ids=["scheme", "brackets", "port", "header", "space", "method"],
)
def test_a_request_that_is_no_http_is_never_begun(request_: Request) -> None:
    result = asyncio.run(send(request_))
    assert result.reply == not_sent("bad_request")
    assert result.exchange.stage is Stage.MARKED


def test_the_next_address_is_tried_as_long_as_nothing_was_sent() -> None:
    async def run() -> Posted:
        async with RawServer(answering(ACCEPTED)) as server:
            seams = replace(Seams.real(), connect=Resolving(("127.0.0.1", free_port()), ("127.0.0.1", server.port)))
            result = await send(request_to("http://service.example:81"), seams=seams)
            await server.idle()
            (peer,) = server.peers
            assert b"\r\nHost: service.example:81\r\n" in peer.received
            return result

    assert asyncio.run(run()).reply == Accepted(dispatch_id=DISPATCH, remote_job_id=RemoteJobId("job-1"))


def test_no_other_address_is_tried_once_a_byte_was_sent() -> None:
    async def drop(peer: Peer) -> None:
        await peer.take(1)
        peer.reset()

    async def run() -> tuple[Posted, int]:
        async with RawServer(answering(ACCEPTED)) as second, RawServer(drop) as first:
            seams = replace(Seams.real(), connect=Resolving(("127.0.0.1", first.port), ("127.0.0.1", second.port)))
            return await send(request_to("http://service.example"), seams=seams), len(second.peers)

    result, others = asyncio.run(run())
    assert result.reply == Doubted(dispatch_id=DISPATCH, cause="reset")
    assert others == 0
