"""One connection: carries out steps to the byte, and ends with exactly the FIN or the reset that was asked for."""

import asyncio
import fcntl
import socket
import struct
import termios
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

from coatcheck.seams import Sleep
from coatcheck.sim.checks import Number
from coatcheck.sim.kinds import End
from coatcheck.sim.ledger import Ending
from coatcheck.sim.requests import Inbound
from coatcheck.sim.steps import HangUp, Send, Step, Wait

LINGER_S = 2.0
SHORT_S = 0.05
FLUSH_ROUNDS = 1_000
Note = Callable[[int, Ending], None]


class Channel:
    """The sending half of a connection, and its end. `inbound` is the receiving half."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sleep: Sleep) -> None:
        writer.transport.set_write_buffer_limits(high=0)
        self.inbound = Inbound(reader, writer)
        self._writer = writer
        self._transport = cast("asyncio.Transport", writer.transport)
        self._sleep = sleep

    async def play(self, steps: Iterator[Step], note: Note) -> bool:
        """Carry out the steps; `note` hears of every byte count and, just before it happens, of the end. True: still open."""
        sent, ending = 0, Ending.STOPPED
        try:
            for step in steps:
                match step:
                    case Send(data):
                        self._writer.write(data)
                        sent += len(data)
                        note(sent, Ending.PENDING)
                        await self._writer.drain()
                    case Wait(seconds):
                        if await self._waited(seconds):
                            ending = Ending.PEER_LEFT
                            return False
                    case HangUp(end):
                        ending = Ending(end)
                        await self._hang_up(end, lambda: note(sent, Ending(end)))  # noqa: B023 - called before the next round
                        return False
            ending = Ending.KEPT
        except (ConnectionError, TimeoutError):
            ending = Ending.PEER_LEFT
        finally:
            note(sent, ending)
        return ending is Ending.KEPT

    async def deaf(self, seconds: Number | None) -> None:
        """Read nothing for `seconds` (None: until the service stops), so that the peer's window fills up."""
        self._transport.pause_reading()
        if seconds is None:
            await asyncio.Event().wait()
        else:
            await self._sleep(seconds)
        self._transport.resume_reading()

    def close(self) -> None:
        """Let go of the connection; what has not been sent by now is dropped."""
        if not self._transport.is_closing():
            self._transport.abort()

    async def _waited(self, seconds: Number | None) -> bool:
        """Wait; True as soon as the peer has left. Short waits do not look."""
        if seconds is None:
            await self.inbound.discard()
            return True
        if seconds < SHORT_S:
            await self._sleep(seconds)
            return False
        gone = asyncio.ensure_future(self.inbound.discard())
        over = asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait({gone, over}, return_when=asyncio.FIRST_COMPLETED)
            return gone.done()
        finally:
            gone.cancel()
            over.cancel()
            await asyncio.gather(gone, over, return_exceptions=True)

    async def _hang_up(self, end: End, note: Callable[[], None]) -> None:
        await self._writer.drain()
        match end:
            case End.FIN:
                note()
                with suppress(OSError):
                    self._writer.write_eof()
                # Closing with unread bytes would turn the FIN into a reset, so the rest is read until the peer closes too.
                await self._waited(LINGER_S)
                self._writer.close()
            case End.RST:
                await self._flushed()
                note()
                reset_on_close(self._writer.get_extra_info("socket"))
                self._transport.abort()

    async def _flushed(self) -> None:
        """Wait until the peer's kernel has every byte: a reset discards what is still queued in ours."""
        for _ in range(FLUSH_ROUNDS):
            if not unacknowledged_bytes(self._writer.get_extra_info("socket")):
                return
            await self._sleep(0.001)


def reset_on_close(connection: TransportSocket) -> None:
    """Closing `connection` sends a reset in place of a FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def unacknowledged_bytes(connection: TransportSocket) -> int:
    """Bytes that the kernel has sent or queued and the peer has not acknowledged; 0 where the system does not tell."""
    try:
        return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), "little")
    except OSError:
        return 0
