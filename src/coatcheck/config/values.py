"""Readers of single values: each takes what the environment (text) or a TOML file holds and returns the one value it means.

A reader raises ValueError without a text; the table says what was expected, and the loader shows what came unless it is secret.
"""

import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import SplitResult, quote, unquote, urlsplit

from coatcheck.config.names import HOST_NAME
from coatcheck.config.secret import Secret
from coatcheck.config.settings import OutputHosts
from coatcheck.core.operation import RenderState

Reader = Callable[[object], object]

# Patterns stay text until a value is read: compiling them all costs every short command 3 ms.
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_LARGEST_PORT = 65_535
_MEANINGS = frozenset(RenderState) - {RenderState.NONE, RenderState.MISSING}


def seconds(*, at_least: float = 0.001, at_most: float = 86_400.0) -> Reader:
    """A duration in seconds."""

    def read(value: object) -> float:
        found = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _number(value)
        if not (math.isfinite(found) and at_least <= found <= at_most):
            raise ValueError
        return found

    return read


def count(*, at_least: int = 1, at_most: int) -> Reader:
    """A whole number."""

    def read(value: object) -> int:
        found = value if isinstance(value, int) and not isinstance(value, bool) else _number(value)
        if not (found == int(found) and at_least <= found <= at_most):
            raise ValueError
        return int(found)

    return read


def pattern(expression: str) -> Reader:
    """Text that an expression describes from end to end."""

    def read(value: object) -> str:
        text = _text(value)
        if re.fullmatch(expression, text, re.ASCII) is None:
            raise ValueError
        return text

    return read


def one_of(*words: str) -> Reader:
    """One of a few words."""

    def read(value: object) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return read


def flag(value: object) -> bool:
    """Yes or no."""
    found = value if isinstance(value, bool) else _FLAGS.get(_text(value).lower())
    if found is None:
        raise ValueError
    return found


def name(value: object) -> str:
    """A name that people give: 1 to 255 bytes without control characters or white space at its ends."""
    text = _text(value)
    if not 1 <= len(text.encode()) <= 255 or not text.isprintable() or text != text.strip():  # noqa: PLR2004 - bytes, as said
        raise ValueError
    return text


def path(value: object) -> str:
    """A path of this machine's file system."""
    text = _text(value)
    if not text or "\0" in text:
        raise ValueError
    return text


def secret(value: object) -> Secret:
    """A credential that can stand in an HTTP header."""
    text = _text(value)
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError
    return Secret(text)


def job_path(value: object) -> str:
    """A path with one place for the remote job's id."""
    text = _text(value)
    before, _, after = text.partition("{id}")
    if "{id}" not in text or "{" in before + after or "}" in before + after:
        raise ValueError
    return str(pattern(r"/[!-~]*")(text))


def cancel_path(value: object) -> str:
    """A path with one place for the remote job's id, or nothing."""
    return "" if value == "" else job_path(value)


def base_url(value: object) -> str:
    """The address of a service; a slash at its end is dropped."""
    text = _text(value)
    parts = _split(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or "?" in text or "#" in text:
        raise ValueError
    return text.rstrip("/")


def database_url(value: object) -> str:
    """A PostgreSQL URL as libpq reads it: one without a host means a local socket."""
    text = _text(value)
    if not text.startswith(("postgresql://", "postgres://")) or "\0" in text:
        raise ValueError
    return text


def database_hint(value: object) -> str:
    """How to write an address that came in the form of libpq's keywords or of SQLAlchemy."""
    text = value if isinstance(value, str) else ""
    if re.match(r"(?:postgresql|postgres)\+\w+://", text):
        return "write postgresql:// without the driver's name"
    if re.match(r"\s*\w+\s*=", text):
        return "write postgresql://user@host:port/database?name=value instead of keywords"
    return ""


def no_hint(_value: object) -> str:
    """Nothing is known about other ways of writing it."""
    return ""


def sink(value: object) -> str:
    """A folder of this machine as a URL."""
    text = _text(value)
    parts = urlsplit(text)
    folder = unquote(parts.path)
    if not text.startswith("file:///") or parts.query or parts.fragment or "\0" in folder or folder.strip("/") == "":
        raise ValueError
    return f"file://{quote(folder.rstrip('/'))}"


def statuses(value: object) -> frozenset[int]:
    """HTTP statuses, 200 excepted: an answer with a snapshot is no closed window."""
    read = count(at_least=100, at_most=599)
    found = frozenset(read(each) for each in _items(value))
    if 200 in found:  # noqa: PLR2004 - OK
        raise ValueError
    return frozenset(int(str(each)) for each in found)


def status_words(value: object) -> Mapping[str, RenderState]:
    """The service's words and what they mean; words compare without case."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise ValueError  # noqa: TRY004 - the loader turns one class into its refusal
    meanings = {str(word).lower(): RenderState(meaning) for word, meaning in found.items()}
    if not set(meanings.values()) <= _MEANINGS or "" in meanings:
        raise ValueError
    return MappingProxyType(meanings)


def output_hosts(value: object) -> OutputHosts:
    """Networks whose addresses count as public, `http://host` for plain http, `https://host:port` for another port."""
    networks, http_hosts, ports = [], set(), set()
    for each in _items(value):
        text = _text(each)
        if "://" not in text:
            networks.append(ipaddress.ip_network(text))
            continue
        parts = _split(text)
        if parts.scheme not in {"http", "https"} or text != f"{parts.scheme}://{parts.netloc}" or "@" in parts.netloc:
            raise ValueError
        if parts.scheme == "http":
            http_hosts.add(str(parts.hostname))
        if parts.port is not None:
            ports.add(parts.port)
    return OutputHosts(networks=tuple(networks), http_hosts=frozenset(http_hosts), ports=frozenset(ports))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - the loader turns one class into its refusal
    return value


def _number(value: object) -> float:
    text = _text(value)
    if re.fullmatch(_NUMBER, text, re.ASCII) is None:
        raise ValueError
    return float(text)


def _items(value: object) -> list[object]:
    """A TOML list, a JSON list, or words between commas."""
    if isinstance(value, str):
        value = (
            json.loads(value) if value.startswith("[") else [each.strip() for each in value.split(",")] if value else []
        )
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - the loader turns one class into its refusal
    return value


def _split(text: str) -> SplitResult:
    """The parts of an http URL; urlsplit drops white space and control characters, which is no way to read an address."""
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError
    parts = urlsplit(text)
    host = parts.hostname or ""
    if ":" in host:
        ipaddress.IPv6Address(host)
    elif re.fullmatch(HOST_NAME, host, re.ASCII) is None:
        raise ValueError
    if parts.port is not None and not 0 < parts.port <= _LARGEST_PORT:
        raise ValueError
    return parts
