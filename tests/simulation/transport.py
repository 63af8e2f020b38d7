"""What asyncio's streams and aiohttp see of a simulated connection: a transport that reads and writes one of its ends.

Its callbacks run in the process that made it, so a killed or stopped process hears nothing.
"""

import asyncio
import contextvars
from asyncio import transports
from collections.abc import Callable
from typing import Any, cast

from simulation.loop import VirtualLoop
from simulation.wire import SimSocket

_READ_BYTES = 64 * 1024


class SimTransport(transports._FlowControlMixin):
    """Over one end of a connection; `context` says whose it is."""

    _loop: VirtualLoop
    _maybe_pause_protocol: Callable[[], None]
    _maybe_resume_protocol: Callable[[], None]

    def __init__(
        self, loop: VirtualLoop, end: SimSocket, protocol: asyncio.BaseProtocol, context: contextvars.Context
    ) -> None:
        super().__init__({"socket": end, "peername": end.getpeername(), "sockname": end.getsockname()}, loop)
        self._end = end
        self._protocol = cast("asyncio.Protocol", protocol)
        self._context = context
        self._buffer = bytearray()
        self._closing = False
        self._ending = False
        self._lost = False
        self._paused = False
        self._eof = False
        self._due: set[str] = set()
        self._call(protocol.connection_made, self)
        end.on_news = lambda: self._soon("read", self._read)
        end.on_room = lambda: self._soon("write", self._flush)
        self._soon("read", self._read)

    def _call(self, what: Callable[..., Any], *args: Any) -> None:
        self._loop.call_soon(what, *args, context=self._context)

    def _soon(self, name: str, what: Callable[[], None]) -> None:
        """Once for any number of wakings."""
        if name not in self._due:
            self._due.add(name)
            self._call(what)

    # -- receiving ----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._due.discard("read")
        while not (self._closing or self._paused or self._eof or self._lost):
            try:
                data = self._end.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self._fatal(error)
                return
            if data:
                self._protocol.data_received(data)
            else:
                self._eof = True
                if not self._protocol.eof_received():
                    self.close()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._soon("read", self._read)

    def is_reading(self) -> bool:
        return not (self._paused or self._closing)

    # -- sending ------------------------------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self._lost or self._ending or not data:
            return
        self._buffer += data
        self._flush()
        self._maybe_pause_protocol()

    def _flush(self) -> None:
        self._due.discard("write")
        if self._lost:
            return
        try:
            while self._buffer:
                del self._buffer[: self._end.send(self._buffer)]
        except BlockingIOError:
            return
        except OSError as error:
            self._fatal(error)
            return
        self._maybe_resume_protocol()
        if self._ending:
            self._end.shutdown()
        if self._closing:
            self._drop(None)

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._ending = True
        self._flush()

    # -- the end ------------------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._buffer:
                self._drop(None)

    def abort(self) -> None:
        self._drop(None)

    def _fatal(self, error: OSError) -> None:
        self._drop(error)

    def _drop(self, error: OSError | None) -> None:
        """The protocol hears of it in a turn of its own, and only then the end is closed, as asyncio does it."""
        if not self._lost:
            self._lost = self._closing = True
            self._buffer.clear()
            self._call(self._say_lost, error)

    def _say_lost(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._end.on_news = self._end.on_room = None
            self._end.close()

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast("asyncio.Protocol", protocol)
