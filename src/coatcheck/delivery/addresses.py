"""The host policy: which URLs, and which addresses behind their names, a worker may be talked into visiting.

A URL comes from a remote service and is hostile until admitted. The configured service's own origin is trusted as the operator wrote
it; everything else is https to a public address. Pure: resolving is the caller's, judging is done here.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import yarl

from coatcheck.config.names import HOST_NAME
from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.errors import SettingInvalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NUMERIC_LABEL = re.compile(r"(?:\d+|0[xX][0-9a-fA-F]*)")
_HOST_NAME = re.compile(HOST_NAME)

# `is_global` differs between Python releases and lets tunnels through; these are refused by name, whatever it says.
_NEVER_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # "this network"; 0.0.0.0 reaches loopback
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; some clouds put their metadata here
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: cloud metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and the broadcast address
        "::/96",  # unspecified, loopback, and IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64, local use
        "100::/64",
        "2001::/23",  # Teredo, ORCHID and other special purposes
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",  # unique local
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local
        "ff00::/8",  # multicast
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Scheme, host and port: what may be trusted as one."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An admitted URL: `url` is sent byte for byte as it came, because re-quoting would break its signature."""

    origin: Origin
    url: yarl.URL = field(repr=False)
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """Where outputs may be fetched from.

    `own_origin` is the service's BASE_URL: always allowed, even when private or plain http. `allow_http_hosts` may be fetched over
    plain http; addresses in `allow_networks` count as public; `allow_ports` are the ports besides the own origin's.
    One call: `HostPolicy(own_origin=origin_of("https://api.example.com/v1")).admit(url)`.
    """

    own_origin: Origin | None
    allow_http_hosts: frozenset[str] = frozenset()
    allow_networks: tuple[Network, ...] = ()
    allow_ports: frozenset[int] = frozenset({443})

    def admit(self, url: str) -> Target:
        """Judge the text of a URL. Raises `Stopped` with `blocked_address` and a masked reason."""
        parsed = _parse(url)
        origin = _origin(parsed)
        trusted = origin == self.own_origin
        if not trusted:
            self._check(origin)
        return Target(origin=origin, url=_as_sent(url, parsed, origin), trusted=trusted)

    def check_addresses(self, target: Target, addresses: list[Address]) -> None:
        """Judge every address behind the name; one bad address refuses all, so a mixed answer wins nothing."""
        if target.trusted:
            return
        for address in addresses:
            if not self._is_allowed(address):
                raise _blocked(f"{target.origin.host} resolves to {address}, which is not public")

    def check_redirect(self, source: Target, destination: Target) -> None:
        """Refuse to leave https once it was there."""
        if source.origin.scheme == "https" and destination.origin.scheme == "http":
            raise _blocked(f"redirect from https to plain http at {destination.origin.host}")

    def _check(self, origin: Origin) -> None:
        plain = origin.scheme == "http"
        if plain and origin.host not in self.allow_http_hosts:
            raise _blocked(f"plain http to {origin.host}; expected https")
        if origin.port not in self.allow_ports and not (plain and origin.port == _DEFAULT_PORTS["http"]):
            raise _blocked(f"port {origin.port} of {origin.host}; expected one of {sorted(self.allow_ports)}")
        if _is_local_name(origin.host) and not any(network.is_loopback for network in self.allow_networks):
            raise _blocked(f"{origin.host} names this machine")

    def _is_allowed(self, address: Address) -> bool:
        listed = any(address in network for network in self.allow_networks)
        inner = _embedded(address)
        if listed and inner is not None:
            return self._is_allowed(inner)
        return listed or is_public(address)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the open internet and can hide no other address inside it."""
    if any(address in network for network in _NEVER_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def origin_of(url: str) -> Origin:
    """The origin of a configured BASE_URL. Raises `SettingInvalid` when it names none."""
    try:
        return _origin(_parse(url))
    except Stopped as stopped:
        raise SettingInvalid(
            f"expected a base URL, got {stopped.outcome.detail}", next="Write it as https://host or https://host:port."
        ) from None


def masked(url: str) -> str:
    """A URL fit for people and logs: no user, no query, no fragment, no control characters, at most 200 characters."""
    try:
        parts = urlsplit(url)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + ("?…" if parts.query else "")
    except ValueError:
        return "(a URL that cannot be read)"
    if not shown.isprintable():
        shown = "".join(character if character.isprintable() else "?" for character in shown)
    return shown if len(shown) <= 200 else shown[:199] + "…"  # noqa: PLR2004 - the docstring's figure


def _parse(url: str) -> yarl.URL:
    if not url.isprintable() or "\\" in url or url != url.strip():
        raise _blocked("a URL with a control character, a backslash or outer blanks")
    try:
        parsed = yarl.URL(url)
        if parsed.scheme not in _DEFAULT_PORTS:
            raise _blocked(f"scheme {parsed.scheme[:20]!r}; expected https")
        authority = urlsplit(url).netloc
        if "@" in authority:
            raise _blocked("a URL that carries a user or a password")
        if "[" in authority and ":" not in (parsed.raw_host or ""):
            raise _blocked("brackets around what is no IPv6 address")
    except ValueError:
        raise _blocked("a URL that cannot be read") from None
    return parsed


def _origin(parsed: yarl.URL) -> Origin:
    host, port = parsed.raw_host, parsed.port
    if not host or not port:
        raise _blocked("a URL without a host or a port")
    host = host.lower()
    if ":" in host:
        if "%" in host:
            raise _blocked("an address with a zone")
    elif _looks_numeric(host):
        _check_canonical(host)
    elif not _HOST_NAME.fullmatch(host):
        raise _blocked("a host that is no plain name: empty labels, a trailing dot or odd characters")
    return Origin(scheme=parsed.scheme, host=host, port=port)


def _looks_numeric(host: str) -> bool:
    """Resolvers read any name whose last label is a number as an IPv4 address: 127.1, 0x7f.1, 2130706433."""
    return _NUMERIC_LABEL.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def _check_canonical(host: str) -> None:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        raise _blocked("an IPv4 address that is not written as four decimal numbers") from None


def _as_sent(url: str, parsed: yarl.URL, origin: Origin) -> yarl.URL:
    """The host from the judged parse, path and query as they came; only what cannot go on the wire is quoted."""
    if url.isascii() and " " not in url:
        raw = urlsplit(url)
        target = (raw.path or "/") + (f"?{raw.query}" if raw.query else "")
    else:
        target = parsed.raw_path_qs
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    port = "" if origin.port == _DEFAULT_PORTS[origin.scheme] else f":{origin.port}"
    return yarl.URL(f"{origin.scheme}://{host}{port}{target}", encoded=True)


def _is_local_name(host: str) -> bool:
    last = host.rpartition(".")[2]
    return last in {"localhost", "localdomain", "localhost6", "ip6-localhost", "ip6-loopback"}


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def _blocked(detail: str) -> Stopped:
    return Stopped(Reason.BLOCKED_ADDRESS, detail)
