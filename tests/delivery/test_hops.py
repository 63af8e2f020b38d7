"""On the way to an output nothing is lent from the environment, nothing carried over, and nothing followed too far."""

import asyncio
import ipaddress
import os
import socket
import ssl
from pathlib import Path

import pytest

from coatcheck.delivery.addresses import HostPolicy
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import NotStored, Reason, Stored
from coatcheck.seams import Seams
from delivery.names import Names
from delivery.origin import deliver, redirecting, response, sending, serving

Found = list[tuple[socket.AddressFamily, tuple[str, int]]]
CERTIFICATE = Path(__file__).with_name("media.example.pem")


def server_tls(seen: list[str | None]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.sni_callback = lambda _connection, name, _context: seen.append(name)
    return context


def tls_policy(*ports: int) -> HostPolicy:
    return HostPolicy(
        own_origin=None,
        allow_http_hosts=frozenset({"media.example"}),
        allow_networks=(ipaddress.ip_network("127.0.0.0/8"),),
        allow_ports=frozenset(ports),
    )


def test_host_and_server_name_stay_those_of_the_url(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[str | None] = []
        names = Names({"media.example": [["127.0.0.1"]]}, sockets=True)
        trust = ssl.create_default_context(cafile=str(CERTIFICATE))
        async with serving(sending(response()), tls=server_tls(seen), name="media.example") as media:
            result = await deliver(
                media.output(), tmp_path, tls_policy(media.port), seams=Seams(connect=names), tls=trust
            )
        assert isinstance(result, Stored)
        assert seen == ["media.example"]
        assert f"host: media.example:{media.port}" in media.heads[0].lower()

    asyncio.run(story())


def test_a_certificate_that_nobody_vouches_for_is_unreachable(tmp_path: Path) -> None:
    async def story() -> None:
        names = Names({"media.example": [["127.0.0.1"]]}, sockets=True)
        async with serving(sending(response()), tls=server_tls([]), name="media.example") as media:
            result = await deliver(media.output(), tmp_path, tls_policy(media.port), seams=Seams(connect=names))
        assert isinstance(result, NotStored)
        assert result.reason == Reason.UNREACHABLE
        assert media.heads == []

    asyncio.run(story())


def test_a_redirect_never_leaves_https(tmp_path: Path) -> None:
    async def story() -> None:
        names = Names({"media.example": [["127.0.0.1"]]}, sockets=True)
        trust = ssl.create_default_context(cafile=str(CERTIFICATE))
        async with (
            serving(sending(response()), name="media.example") as plain,
            serving(redirecting(plain.url()), tls=server_tls([]), name="media.example") as secure,
        ):
            policy = tls_policy(plain.port, secure.port)
            seams = Seams(connect=names)
            allowed = await deliver(plain.output(), tmp_path, policy, seams=seams)
            downgraded = await deliver(secure.output(), tmp_path, policy, seams=seams, tls=trust)
        assert isinstance(allowed, Stored)
        assert isinstance(downgraded, NotStored)
        assert downgraded.reason == Reason.BLOCKED_ADDRESS
        assert len(plain.heads) == 1

    asyncio.run(story())


def test_proxies_and_credentials_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with serving(sending(response())) as origin, serving(sending(response())) as proxy:
            netrc = tmp_path / "netrc"
            netrc.write_text("machine 127.0.0.1 login somebody password SECRET\n")
            netrc.chmod(0o600)
            monkeypatch.setenv("NETRC", os.fspath(netrc))
            for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url("/"))
            result = await deliver(origin.output(), tmp_path / "sink", origin.policy)
        assert isinstance(result, Stored)
        assert proxy.heads == []
        lines = {line.partition(":")[0].lower() for line in origin.heads[0].split("\r\n")[1:] if line}
        assert lines == {"host", "accept", "accept-encoding", "user-agent", "connection"}

    asyncio.run(story())


def test_no_cookie_travels_from_one_hop_to_the_next(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(sending(response())) as goal:
            hop = sending(
                response(b"", status="307 Temporary", headers=[f"Location: {goal.url('/b')}", "Set-Cookie: a=SECRET"])
            )
            async with serving(hop) as start:
                policy = HostPolicy(
                    own_origin=None,
                    allow_http_hosts=frozenset({"127.0.0.1"}),
                    allow_networks=(ipaddress.ip_network("127.0.0.1/32"),),
                    allow_ports=frozenset({start.port, goal.port}),
                )
                assert isinstance(await deliver(start.output(), tmp_path, policy), Stored)
        assert "cookie" not in goal.heads[0].lower()
        assert "referer" not in goal.heads[0].lower()

    asyncio.run(story())


def test_a_signed_url_is_sent_byte_for_byte(tmp_path: Path) -> None:
    """Quoting `%2F` anew would spare nobody a byte and break a signature made over the text."""

    async def story() -> None:
        async with serving(sending(response())) as origin:
            path = "/a%2Fb/c%20d?sig=a%2Fb%3D+c&X-Amz=%7e~!$'()*,;:@&empty="
            assert isinstance(await deliver(origin.output(url=origin.url(path)), tmp_path, origin.policy), Stored)
            spaced = origin.output(url=origin.url("/ein bild.png?t=ü"))
            assert isinstance(await deliver(spaced, tmp_path, origin.policy), Stored)
        assert origin.heads[0].split(" ")[1] == path
        assert origin.heads[1].split(" ")[1] == "/ein%20bild.png?t=%C3%BC"

    asyncio.run(story())


@pytest.mark.parametrize("hops", [0, 3])
def test_redirects_are_counted_to_the_limit_and_no_further(hops: int, tmp_path: Path) -> None:
    async def story() -> None:
        async def answer(path: str, writer: asyncio.StreamWriter) -> None:
            left = int(path.strip("/"))
            await (redirecting(f"/{left - 1}") if left else sending(response()))(path, writer)

        async with serving(answer) as origin:
            limits = Limits(max_redirects=hops)
            within = await deliver(origin.output(url=origin.url(f"/{hops}")), tmp_path, origin.policy, limits=limits)
            beyond = await deliver(
                origin.output(url=origin.url(f"/{hops + 1}")), tmp_path, origin.policy, limits=limits
            )
        assert isinstance(within, Stored)
        assert isinstance(beyond, NotStored)
        assert beyond.reason == Reason.TOO_MANY_REDIRECTS

    asyncio.run(story())
