"""A worker cannot be talked into visiting a place that the operator did not mean it to see."""

import asyncio
import ipaddress
from pathlib import Path

import pytest

from coatcheck.delivery.addresses import HostPolicy, is_public, masked, origin_of
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import NotStored, OutputSource, Reason, Stopped, Stored
from coatcheck.errors import SettingInvalid
from coatcheck.seams import Seams
from delivery.names import Names
from delivery.origin import deliver, redirecting, response, sending, serving

POLICY = HostPolicy(own_origin=origin_of("http://127.0.0.1:8080/v1"))
NAMES = {
    "metadata.google.internal": ["169.254.169.254"],
    "private.example": ["10.1.2.3"],
    "mixed.example": ["93.184.216.34", "192.168.1.1"],
    "mixed6.example": ["2606:2800:220:1::1", "fd00::1"],
    "mapped.example": ["::ffff:169.254.169.254"],
    "localhost": ["127.0.0.1"],
    "a.localhost": ["127.0.0.1"],
}


def output(url: str) -> OutputSource:
    return OutputSource(
        operation_id="op-1", tenant_id="t", index=0, url=url, content_type=None, bytes=None, sha256=None
    )


HOSTILE = [
    # schemes
    "http://cdn.example/x",
    "ftp://cdn.example/x",
    "file:///etc/passwd",
    "gopher://cdn.example/",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "//cdn.example/x",
    "cdn.example/x",
    "",
    # user, port, shape
    "https://user@93.184.216.34/",
    "https://user:SECRET@93.184.216.34/",
    "https://@93.184.216.34/",
    "https://93.184.216.34@127.0.0.1/",
    "https://93.184.216.34:22/",
    "https://93.184.216.34:80/",
    "https://93.184.216.34:8443/",
    "https://93.184.216.34:0/",
    "https://93.184.216.34:99999/",
    "https:///path",
    "https://93.184.216.34\\@127.0.0.1/",
    "https://93.184.216.34/\r\nHost: evil",
    "https://cdn\t.example/",
    " https://93.184.216.34/",
    "https://cdn..example/",
    "https://cdn.example./",
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://[::1",
    "https://[v1.x]/",
    "https://-cdn.example/",
    "https://cdn.example%00.png/",
    # loopback and its spellings
    "https://127.0.0.1/",
    "https://127.0.0.1:8080/",
    "http://127.0.0.1/",
    "http://127.0.0.1:8081/",
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.01/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://\u2460\u2461\u2466.0.0.1/",
    "https://127\u30020\u30020\u30021/",
    "https://0/",
    "https://0.0.0.0/",
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://a.localhost/",
    # private, link-local, special
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.100.100.200/",
    "https://100.64.0.1/",
    "https://192.0.0.192/",
    "https://198.18.0.1/",
    "https://203.0.113.9/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://192.88.99.1/",
    # IPv6: wrapping, tunnels, local
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::ffff:93.184.216.34]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[64:ff9b:1::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a9fe:a9fe::1]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[100::1]/",
    # names that lead there
    *(f"https://{name}/" for name in NAMES),
]


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(set(HOSTILE)) >= 80


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_url_is_blocked_before_any_socket_exists(url: str, tmp_path: Path) -> None:
    names = Names({name: [addresses] for name, addresses in NAMES.items()}, sockets=False)
    result = asyncio.run(deliver(output(url), tmp_path, POLICY, seams=Seams(connect=names)))
    assert isinstance(result, NotStored)
    assert result.reason == Reason.BLOCKED_ADDRESS
    assert not result.retryable
    assert "SECRET" not in result.detail


@pytest.mark.parametrize("url", HOSTILE)
def test_a_redirect_to_a_hostile_url_is_blocked_as_well(url: str, tmp_path: Path) -> None:
    """Those that a header cannot carry, or that mean a path of the same host, are no redirects elsewhere."""
    if not url.isascii() or any(c in url for c in "\r\n\t") or url[:1] in {"", " "} or url == "cdn.example/x":
        url = "//10.0.0.1/"

    async def story() -> None:
        names = Names({name: [addresses] for name, addresses in NAMES.items()}, sockets=True)
        async with serving(redirecting(url)) as origin:
            result = await deliver(origin.output(), tmp_path, origin.policy, seams=Seams(connect=names))
        assert isinstance(result, NotStored)
        assert result.reason == Reason.BLOCKED_ADDRESS
        assert len(origin.heads) == 1

    asyncio.run(story())


def test_a_name_is_resolved_once_and_only_the_judged_address_is_visited(tmp_path: Path) -> None:
    """The second answer of a rebinding name would lead to a private service that listens on the same port."""

    async def story() -> None:
        async with serving(sending(response())) as private:
            judged = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.2", private.port)
            names = Names({"rebind.example": [["127.0.0.2"], ["127.0.0.1"]]}, sockets=True)
            policy = HostPolicy(
                own_origin=None,
                allow_http_hosts=frozenset({"rebind.example"}),
                allow_networks=(ipaddress.ip_network("127.0.0.2/32"),),
                allow_ports=frozenset({private.port}),
            )
            async with judged:
                url = f"http://rebind.example:{private.port}/x"
                result = await deliver(output(url), tmp_path, policy, seams=Seams(connect=names))
            assert names.asked == ["rebind.example"]
            assert private.heads == []
            assert isinstance(result, NotStored)
            assert result.reason == Reason.UNREACHABLE
            second = await deliver(output(url), tmp_path, policy, seams=Seams(connect=names))
        assert isinstance(second, NotStored)
        assert second.reason == Reason.BLOCKED_ADDRESS
        assert private.heads == []

    asyncio.run(story())


def test_the_services_own_origin_is_allowed_and_a_neighbour_of_it_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(sending(response())) as own, serving(sending(response())) as neighbour:
            assert isinstance(await deliver(own.output(), tmp_path, own.policy), Stored)
            result = await deliver(neighbour.output(), tmp_path, own.policy)
        assert isinstance(result, NotStored)
        assert result.reason == Reason.BLOCKED_ADDRESS
        assert neighbour.heads == []

    asyncio.run(story())


def test_what_the_operator_lists_is_allowed(tmp_path: Path) -> None:
    async def story() -> None:
        names = Names({"media.example": [["127.0.0.1"]]}, sockets=True)
        async with serving(sending(response()), name="media.example") as media:
            policy = HostPolicy(
                own_origin=origin_of("https://api.example"),
                allow_http_hosts=frozenset({"media.example"}),
                allow_networks=(ipaddress.ip_network("127.0.0.0/8"),),
                allow_ports=frozenset({443, media.port}),
            )
            result = await deliver(media.output(), tmp_path, policy, seams=Seams(connect=names))
        assert isinstance(result, Stored)
        assert f"host: media.example:{media.port}" in media.heads[0].lower()

    asyncio.run(story())


def test_a_listed_translation_prefix_does_not_let_private_addresses_through() -> None:
    policy = HostPolicy(own_origin=None, allow_networks=(ipaddress.ip_network("64:ff9b::/96"),))
    target = policy.admit("https://cdn.example/")
    policy.check_addresses(target, [ipaddress.ip_address("64:ff9b::5db8:d822")])
    with pytest.raises(Stopped):
        policy.check_addresses(target, [ipaddress.ip_address("64:ff9b::a9fe:a9fe")])


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::200e"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_a_url_is_shown_without_its_secrets() -> None:
    shown = masked("https://user:SECRET@cdn.example:8443/a/b.png?signature=SECRET#SECRET")
    assert shown == "https://cdn.example:8443/a/b.png?…"
    assert masked("https://[::1") == "(a URL that cannot be read)"
    assert masked("https://h/\x1b[31m\u202e").isprintable()
    assert len(masked("https://h/" + "x" * 999)) == 200


@pytest.mark.parametrize("url", ["", "api.example", "ftp://api.example", "https://user@api.example", "https://127.1"])
def test_a_base_url_that_names_no_origin_is_refused(url: str) -> None:
    with pytest.raises(SettingInvalid):
        origin_of(url)


@pytest.mark.parametrize("change", [{"max_redirects": 11}, {"max_bytes": 0}, {"total_s": float("inf")}])
def test_no_limit_can_be_lifted(change: dict[str, int]) -> None:
    with pytest.raises(SettingInvalid):
        Limits(**change)
