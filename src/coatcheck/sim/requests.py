"""Reading requests: h11 parses, one parser for each request of a connection; what has not been asked for is not read."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import h11

READ_BYTES = 65_536
REFERENCE_LIMIT = 200
HEAD_LIMIT_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request without its body. Header names are in lower case; of repeated ones the last counts."""

    method: str
    target: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    keep: bool = True

    @property
    def followed(self) -> bool:
        """Whether the client came here by a redirect of ours; such requests are never struck."""
        return "hop" in self.query

    def bearer(self) -> str | None:
        """The bearer key, None when there is none."""
        scheme, _, key = self.headers.get("authorization", "").partition(" ")
        return key.strip() or None if scheme.lower() == "bearer" else None

    def owner(self) -> str:
        """What stands for the bearer key: jobs belong to it, and nobody can read it back."""
        return hashlib.sha256((self.bearer() or "").encode("latin-1", "replace")).hexdigest()

    def reference(self) -> str | None:
        """What the client wants its job to repeat: at most 200 printable characters."""
        text = self.headers.get("x-client-reference", "")
        return text if 0 < len(text) <= REFERENCE_LIMIT and text.isascii() and text.isprintable() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A connection that ended, or stopped being HTTP, inside a request head; `first` is what came of it, as far as a line."""

    first: bytes = field(repr=False)
    gone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What came of a body."""

    data: bytes = field(repr=False)
    complete: bool
    too_long: bool = False


class Inbound:
    """The receiving half of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = _parser()
        self._first = bytearray()

    async def head(self) -> Head | Broken | None:
        """The next request's head; None when the peer is done."""
        self._renew()
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError:
                return Broken(first=bytes(self._first), gone=False)
            if isinstance(event, h11.Request):
                return _head(event)
            if not await self._more(keep_first=True):
                return Broken(first=bytes(self._first), gone=True) if self._first else None

    async def body(self, limit_bytes: int) -> Body:
        """The request's body, up to the limit; a client that waits for 100 Continue is told to go on."""
        if self._parser.they_are_waiting_for_100_continue:
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        data = bytearray()
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError:
                return Body(data=bytes(data), complete=False)
            if isinstance(event, h11.Data):
                data += event.data
            elif isinstance(event, h11.EndOfMessage):
                return Body(data=bytes(data), complete=True)
            elif not await self._more():
                return Body(data=bytes(data), complete=False)
            if len(data) > limit_bytes:
                return Body(data=bytes(data), complete=False, too_long=True)

    async def discard(self) -> None:
        """Read and forget until the peer is done."""
        while await self._read():
            pass

    def _renew(self) -> None:
        """A fresh parser for the next request, given what was read beyond the last."""
        left = self._parser.trailing_data[0]
        self._parser = _parser()
        self._first = bytearray(left[:HEAD_LIMIT_BYTES])
        if left:
            self._parser.receive_data(left)

    async def _more(self, *, keep_first: bool = False) -> bool:
        data = await self._read()
        if data and keep_first:
            self._first += data[: HEAD_LIMIT_BYTES - len(self._first)]
        if data:
            self._parser.receive_data(data)
        return bool(data)

    async def _read(self) -> bytes:
        """The next bytes; none when the peer ended or reset the connection."""
        try:
            return await self._reader.read(READ_BYTES)
        except (ConnectionError, TimeoutError):
            return b""


def _parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT_BYTES)


def _head(event: h11.Request) -> Head:
    target = event.target.decode("latin-1")
    path, _, query = target.partition("?")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
    return Head(
        method=event.method.decode("latin-1"),
        target=target,
        path=path,
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers=headers,
        keep=event.http_version == b"1.1" and headers.get("connection", "").lower() != "close",
    )
