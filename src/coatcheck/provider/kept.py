"""Connections that carry one request after the other. asyncio's transport reads and writes; here what it reads is handed to whoever asked.

Bytes that come while nobody asks are no answer to anything: they end the connection.
"""

import asyncio
import socket
from typing import Final, cast

from coatcheck.provider.origin import Origin
from coatcheck.seams import Clock, Socket, wake

KEEP_S: Final = 15.0
"""Seconds for which a connection waits for its next request at least, and twice that at most. Usual servers wait for 5 to 75."""


class Connection(asyncio.Protocol):
    """One connection, as `loop.create_connection(lambda: Connection(dialled), sock=dialled)` makes it."""

    __slots__ = (
        *("_arrived", "_gone", "_is_asked", "_is_paused", "_socket", "_transport", "_waiting"),
        *("is_open", "is_orderly"),
    )

    def __init__(self, dialled: Socket) -> None:
        self._socket = dialled
        self._arrived: list[bytes] = []
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_asked = False
        self._is_paused = False
        self._waiting: asyncio.Future[None] | None = None
        self.is_open = True
        self.is_orderly = True
        """False once it was reset. An end of TLS without its notice is not told from one with it: what is read over this is JSON, whose beginning is none."""

    def secured(self, transport: asyncio.Transport) -> None:
        """From now on it speaks through TLS."""
        self._transport = transport

    def ask(self, head: bytes) -> None:
        """Send a request; `receive` brings what is said to it, until `rest`. All of it goes out sooner or later, unless the connection ends."""
        self._is_asked = True
        self._transport.write(head)

    async def receive(self) -> bytes:
        """What came in; empty at the end. A piece is held back, and no more, until this one is asked for."""
        if not self._arrived and self.is_open:
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._arrived.pop(0) if self._arrived else b""

    def rest(self) -> bool:
        """Nobody asks any more; whether somebody may ask again."""
        self._is_asked = False
        return self.is_open and not self._arrived

    def is_silent(self) -> bool:
        """Whether nothing came since, also nothing that the event loop has not seen yet: it would be taken for the answer to what is asked next."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return self.is_open
        except OSError:
            return False
        return False

    def close(self) -> None:
        """End it now; nothing more is sent or received."""
        self.is_open = False
        self._transport.abort()

    async def closed(self) -> None:
        """Wait until the event loop has let go of it."""
        await self._gone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It may be asked; from asyncio."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Something came, for whoever asked; unasked, it ends the connection."""
        if not self._is_asked:
            self.close()
            return
        self._arrived.append(data)
        if len(self._arrived) > 1 and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, by either side, or by an error: whoever waits for more gets the rest and then the end."""
        self.is_open, self.is_orderly = False, exc is None
        self._wake()
        wake(self._gone)

    def _wake(self) -> None:
        if self._waiting is not None:
            wake(self._waiting)


class Pool:
    """The connections that wait for a next request. `take` one, `keep` it afterwards, and `close` the rest in the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._idle: dict[Origin, list[tuple[float, Connection]]] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_over = False

    def take(self, origin: Origin) -> Connection | None:
        """The one that was used last, so that those that are not needed grow old."""
        idle = self._idle.get(origin)
        while idle:
            _, connection = idle.pop()
            if connection.is_silent():
                return connection
            connection.close()
        return None

    def keep(self, origin: Origin, connection: Connection) -> None:
        """It may be asked again."""
        if self._is_over:
            connection.close()
            return
        self._idle.setdefault(origin, []).append((self._clock.boottime(), connection))
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(KEEP_S, self._sweep)

    async def close(self) -> None:
        """End all of them, and those that are still to come."""
        self._is_over = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        waiting = [connection for idle in self._idle.values() for _, connection in idle]
        self._idle.clear()
        for connection in waiting:
            connection.close()
        for connection in waiting:
            await connection.closed()

    def _sweep(self) -> None:
        """End those that are old, forget those that have ended, and come again as long as there are others."""
        kept_since = self._clock.boottime() - KEEP_S
        for origin, idle in list(self._idle.items()):
            for since, connection in idle:
                if since < kept_since:
                    connection.close()
            self._idle[origin] = [each for each in idle if each[1].is_open]
            if not self._idle[origin]:
                del self._idle[origin]
        self._sweeping = asyncio.get_running_loop().call_later(KEEP_S, self._sweep) if self._idle else None
