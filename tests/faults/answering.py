"""Between workers and PostgreSQL, something that answers a statement with an error of its choice, as the server itself would.

Before the effect: the server never hears of the statement. After it: the statement is executed and committed, and its reply is kept back.
Where the real server ends the session with such an error, the connection ends here, too.
"""

import asyncio
import enum
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from coatcheck.store.statements import statement
from faults.proxy import BIND, PARSE, QUERY, READY, SYNC, carried_by, message_from, socket_of

ENDS_THE_SESSION = frozenset({"57P01", "25P03", "53300", "08006"})
"""The server, or a pooler before it, says this and closes the connection."""
REFUSED_AT_THE_DOOR = "53300"
"""Said to who connects, never to who is connected: the connection breaks without a word, and the next one is refused."""


class Moment(enum.Enum):
    """When the error comes."""

    BEFORE = enum.auto()
    AFTER = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What befalls the nth execution of each statement."""

    sqlstate: str
    moment: Moment
    nth: int = 1


class Answering:
    """One place before the server. `executed` counts how often each named statement came by, `injected` which were struck."""

    def __init__(self, server: str, injection: Injection, names: Mapping[bytes, str]) -> None:
        self._server = server
        self._injection = injection
        self._names = names
        self._refusals = 0
        self._lock = threading.Lock()
        self.executed: Counter[str] = Counter()
        self.injected: list[str] = []

    @property
    def is_at_the_door(self) -> bool:
        """Whether it is those who connect that hear of the error."""
        return self._injection.sqlstate == REFUSED_AT_THE_DOOR

    def named(self, text: bytes) -> str:
        """The statement's name by its first line; empty for what is none of ours."""
        return self._names.get(text.split(b"\n", 1)[0], "")

    def struck(self, name: str) -> Injection | None:
        """What befalls this execution."""
        with self._lock:
            self.executed[name] += 1
            if not name or self.executed[name] != self._injection.nth:
                return None
            self.injected.append(name)
            self._refusals += self.is_at_the_door
            return self._injection

    def is_refused(self) -> bool:
        """Whether the connection that comes now finds no place."""
        with self._lock:
            refused = self._refusals > 0
            self._refusals -= refused
            return refused

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        above, below = await asyncio.open_unix_connection(self._server)
        try:
            await _Session(self, reader, writer, above, below).run()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            below.transport.abort()
            # what was said last is still to be read
            writer.close()


@dataclass(slots=True)
class _Session:
    place: Answering
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    above: asyncio.StreamReader
    below: asyncio.StreamWriter

    async def run(self) -> None:
        """Requests go up one by one, and each whole reply comes down, or what is said instead of it."""
        size = await self.reader.readexactly(4)
        begin = size + await self.reader.readexactly(struct.unpack("!I", size)[0] - 4)
        if self.place.is_refused():
            await self._say(REFUSED_AT_THE_DOOR)
            return
        self.below.write(begin)
        self.writer.write(await self._reply())
        names: dict[bytes, str] = {}
        while True:
            request, name = await self._request(names)
            injection = self.place.struck(name) if name is not None else None
            if injection is None:
                self.below.write(request)
                self.writer.write(await self._reply())
                continue
            if injection.moment is Moment.AFTER:
                self.below.write(request)
                await self._reply()
            if injection.sqlstate != REFUSED_AT_THE_DOOR:
                await self._say(injection.sqlstate)
            if injection.sqlstate in ENDS_THE_SESSION:
                return

    async def _request(self, names: dict[bytes, str]) -> tuple[bytes, str | None]:
        """Messages up to the one that asks for a reply, and the name of the statement that they execute, if they execute one."""
        request, name = b"", None
        while True:
            kind, message = await message_from(self.reader)
            request += message
            if kind == PARSE:
                known, text = message[5:].split(b"\0", 2)[:2]
                names[known] = self.place.named(text)
            elif kind == BIND:
                name = names[message[5:].split(b"\0", 2)[1]]
            if kind in (SYNC, QUERY):
                return request, name

    async def _reply(self) -> bytes:
        reply = b""
        while True:
            kind, message = await message_from(self.above)
            reply += message
            if kind == READY:
                return reply

    async def _say(self, sqlstate: str) -> None:
        fatal = sqlstate in ENDS_THE_SESSION
        word = b"FATAL" if fatal else b"ERROR"
        fields = b"".join(
            kind + value + b"\0"
            for kind, value in ((b"S", word), (b"V", word), (b"C", sqlstate.encode()), (b"M", b"injected"))
        )
        said = b"E" + struct.pack("!I", len(fields) + 5) + fields + b"\0"
        self.writer.write(said if fatal else said + b"Z" + struct.pack("!I", 5) + b"I")
        await self.writer.drain()


@contextmanager
def answering(url: str, injection: Injection, statements: Sequence[str]) -> Iterator[tuple[Answering, str]]:
    """Such a place before the server of `url` for statements like `store/mark`, and its address."""
    names = {statement(*each.split("/")).split("\n", 1)[0].encode(): each for each in statements}
    assert len(names) == len(statements), "two statements begin alike"
    place = Answering(socket_of(url), injection, names)
    with carried_by(place.converse, url) as address:
        yield place, address
