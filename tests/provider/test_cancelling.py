"""Wishes to cancel: what goes out has no body and no other way than the configured one, and only a status that was received says anything."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from coatcheck import SettingInvalid
from coatcheck.config import load_settings
from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.core.operation import CancelAnswer, RemoteJobId
from coatcheck.provider.cancelling import Cancels
from coatcheck.provider.port import CancelAnswered, Transient
from coatcheck.seams import Seams
from provider.genaces import genace
from provider.rawserver import Peer, RawServer, answering, reply_of
from provider.sending import TLS

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SEEN = Exchange(stage=Stage.BODY_RECEIVED, complete=True)
PATH = "/api/v1/jobs/{id}/cancel"


def test_a_service_that_is_not_configured_so_is_told_nothing() -> None:
    assert genace().cancel(RemoteJobId("job-1")) is None


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_the_request_has_no_body_and_any_id_stays_one_segment(method: str) -> None:
    request = genace(cancel_path=PATH, cancel_method=method).cancel(RemoteJobId("../a?b"))
    assert request is not None
    assert (request.method, request.body) == (method, b"")
    assert request.url.endswith("/api/v1/jobs/..%2Fa%3Fb/cancel")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_it_goes_out_as_it_is_and_the_answer_comes_back(method: str) -> None:
    async def run() -> tuple[bytes, Exchange]:
        async with RawServer(answering(reply_of(b"{}", status="202 Accepted"))) as server:
            async with Cancels(tls=TLS, seams=Seams.real()) as line:
                exchange = await line.cancel(Request(method=method, url=f"{server.url}/jobs/1/cancel"), timeout_s=5)
            return bytes(server.peers[0].received), exchange

    sent, exchange = asyncio.run(run())
    head, _, body = sent.partition(b"\r\n\r\n")
    assert head.startswith(f"{method} /jobs/1/cancel HTTP/1.1\r\n".encode())
    assert body == b""
    # a DELETE without a body has no length: "should not send" one (RFC 9110, 8.6)
    assert (b"\r\nContent-Length: 0" in head) is (method == "POST")
    assert b"\r\nConnection: close" in head
    assert exchange.status == 202


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_wish_whose_connection_ends_without_an_answer_is_not_sent_again(method: str) -> None:
    """For some services a second DELETE means something else; whoever owes the wish says it again later."""

    async def play(peer: Peer) -> None:
        await peer.request()

    async def run() -> Exchange:
        async with server, Cancels(tls=TLS, seams=Seams.real()) as line:
            return await line.cancel(Request(method=method, url=f"{server.url}/jobs/1/cancel"), timeout_s=5)

    server = RawServer(play)
    assert asyncio.run(run()).failure == "closed"
    assert len(server.peers) == 1


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_wish_never_goes_over_a_connection_that_waited(method: str) -> None:
    """Its service may be ending that one at this moment, and a wish is not sent again by itself."""

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(reply_of(b"{}", status="200 OK"))
        await peer.gone()

    async def run() -> None:
        async with RawServer(play) as server, Cancels(tls=TLS, seams=Seams.real()) as line:
            for _ in range(2):
                wish = Request(method=method, url=f"{server.url}/jobs/1/cancel")
                assert (await line.cancel(wish, timeout_s=5)).status == 200
                # it is not kept for anybody, either
                await server.idle()
            assert [peer.received.count(b"/jobs/1/cancel") for peer in server.peers] == [1, 1]

    with mock.patch("coatcheck.provider.kept.KEEP_S", 3600):
        asyncio.run(run())


@pytest.mark.parametrize(
    "request_",
    [
        Request(method="POST", url="http://h/", body=b"{}"),
        Request(method="PUT", url="http://h/"),
        Request(method="GET", url="http://h/"),
    ],
)
def test_nothing_that_could_order_is_sent(request_: Request) -> None:
    async def run() -> int:
        async with RawServer(answering(reply_of(b"{}", status="200 OK"))) as server:
            async with Cancels(tls=TLS, seams=Seams.real()) as line:
                with pytest.raises(ValueError, match="without a body"):
                    await line.cancel(replace(request_, url=f"{server.url}/jobs"), timeout_s=5)
            return len(server.peers)

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize(
    ("status", "answer"),
    [(status, CancelAnswer.TAKEN) for status in (200, 202, 204)]
    + [(status, CancelAnswer.REFUSED) for status in (302, 400, 404, 405, 409, 410, 422, 501)],
)
def test_a_status_that_says_something_is_taken_or_refused(status: int, answer: CancelAnswer) -> None:
    found = genace(cancel_path=PATH).cancelled(replace(SEEN, status=status), now=NOW)
    assert found == CancelAnswered(answer=answer, status=status)


@pytest.mark.parametrize("status", [None, 401, 402, 403, 408, 425, 429, 500, 502, 503, 504, 520])
def test_what_says_nothing_about_the_job_is_asked_again(status: int | None) -> None:
    assert isinstance(genace(cancel_path=PATH).cancelled(replace(SEEN, status=status), now=NOW), Transient)


@pytest.mark.parametrize(
    ("create", "cancel"),
    [("/api/v1/jobs", "/api/v1/{id}"), ("/jobs/new", "/jobs/{id}"), ("/jobs-new?x=1", "/jobs-{id}")],
)
def test_a_path_that_some_id_turns_into_the_one_that_orders_is_refused(
    create: str, cancel: str, tmp_path: Path
) -> None:
    prefix = "COATCHECK_PROVIDERS__GENACE__"
    environ = {f"{prefix}CREATE_PATH": create, f"{prefix}CANCEL_PATH": cancel}
    with pytest.raises(SettingInvalid, match="CANCEL_PATH"):
        load_settings(environ, tmp_path)
    assert load_settings({**environ, f"{prefix}CANCEL_PATH": PATH}, tmp_path).providers["genace"].cancel_path == PATH
