"""Connections of the simulated network: bytes take time, may stop on the way, and a connection can be cut after any byte of either way.

Two ends, each with a kernel: what was handed over goes on without its process, what a reset met on the way is dropped if it still waits,
and nothing is delivered later than TCP_USER_TIMEOUT after it was sent. Every change of a connection happens at an instant of the loop.
"""

import contextvars
import errno
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.loop import VirtualLoop
from simulation.process import check_alive, current

WINDOW_BYTES: Final = 128 * 1024
_USER_TIMEOUT_S: Final = 900.0
FIN, RST = "fin", "rst"
_NOBODY: Final = contextvars.Context()


@dataclass(slots=True, kw_only=True)
class Way:
    """One direction of a connection. `cut_at`: after so many bytes it ends as `cut_end` says; `stall_at`: then it is silent for `stall_s`."""

    latency_s: float
    cut_at: int | None = None
    cut_end: str = RST
    stall_at: int | None = None
    stall_s: float = 0.0
    on_fault: Callable[[str], None] = field(default=lambda _: None, repr=False)
    count: int = 0
    last_at: float = 0.0
    silent_until: float = 0.0
    is_dead: bool = False


class SimSocket:
    """One end of a connection, with the methods of a socket that production uses. `way` leads from here to the other end."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, loop: VirtualLoop, number: int) -> None:
        self._loop = loop
        self._number = number
        self.peer: SimSocket | None = None
        self.way = Way(latency_s=0.0)
        self.inbox = bytearray()
        self.ended = False
        self.broken: OSError | None = None
        self.closed = False
        self.shut = False
        self.on_news: Callable[[], None] | None = None
        self.on_room: Callable[[], None] | None = None
        self._resets = False
        self._user_timeout_s = _USER_TIMEOUT_S
        self._under_way: deque[list[Any]] = deque()
        self._queued = 0
        self._owner = current()
        if self._owner is not None:
            self._owner.at_end[self] = self._close

    # -- what production calls ----------------------------------------------------------------------------------------

    def fileno(self) -> int:
        return -1 if self.closed else self._number

    def setblocking(self, flag: bool) -> None:
        assert not flag

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        if level == socket.SOL_SOCKET and option == socket.SO_LINGER:
            assert isinstance(value, bytes)
            self._resets = struct.unpack("ii", value) == (1, 0)
        elif level == socket.IPPROTO_TCP and option == socket.TCP_USER_TIMEOUT:
            assert isinstance(value, int)
            self._user_timeout_s = value / 1000

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self._number

    getpeername = getsockname

    def send(self, data: bytes | bytearray | memoryview) -> int:
        check_alive()
        if self.closed:
            raise OSError(errno.EBADF, "closed")
        if self.broken is not None:
            raise self.broken
        if self.shut or self.peer is None:
            raise BrokenPipeError(errno.EPIPE, "not connected")
        count = min(len(data), self.room)
        if not count:
            raise BlockingIOError
        self._queued += count
        self._hand_over(bytes(data[:count]))
        return count

    def recv(self, limit: int, flags: int = 0) -> bytes:
        check_alive()
        if self.closed:
            raise OSError(errno.EBADF, "closed")
        if self.inbox:
            data = bytes(self.inbox[:limit])
            if flags & socket.MSG_PEEK:
                return data
            del self.inbox[:limit]
            if self.peer is not None:
                self.peer._has_room()
            return data
        if self.broken is not None:
            raise self.broken
        if self.ended:
            return b""
        raise BlockingIOError

    def shutdown(self) -> None:
        """No more is sent from here."""
        if not self.shut and not self.closed and self.broken is None:
            self.shut = True
            self._hand_over(FIN)

    def close(self) -> None:
        check_alive()
        if self._owner is not None:
            self._owner.at_end.pop(self, None)
        self._close()

    # -- the kernel ---------------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many bytes it takes now: what is on its way and what the other side did not read fill the window."""
        unread = 0 if self.peer is None else len(self.peer.inbox)
        return max(0, WINDOW_BYTES - self._queued - unread)

    @property
    def has_news(self) -> bool:
        """Whether there is something to receive, the end included."""
        return bool(self.inbox or self.ended or self.broken)

    def _close(self) -> None:
        """Like a process's end: a reset where one was asked for or something was left unread, an orderly end otherwise."""
        if self.closed:
            return
        self.closed = True
        if self.broken is not None or self.peer is None:
            return
        if self._resets or self.inbox:
            self._reset()
        elif not self.shut:
            self.shut = True
            self._hand_over(FIN)

    def _reset(self) -> None:
        """What still waits to be sent is dropped; what is on the line arrives before the reset does."""
        now = self._loop.time()
        if now < self.way.silent_until:
            self._under_way.clear()
        self.shut = True
        self._hand_over(RST)

    def _hand_over(self, what: bytes | str) -> None:
        """To the line, with the faults that lie on it."""
        way = self.way
        if way.is_dead:
            return
        is_cut = isinstance(what, bytes) and way.cut_at is not None and way.count + len(what) > way.cut_at
        if isinstance(what, bytes) and way.cut_at is not None and is_cut:
            what = what[: max(0, way.cut_at - way.count)]
        if what:
            self._send_off(what)
        if isinstance(what, bytes):
            way.count += len(what)
        if is_cut:
            self._cut()

    def _send_off(self, what: bytes | str) -> None:
        way, now = self.way, self._loop.time()
        if way.stall_at is not None and isinstance(what, bytes) and way.count + len(what) > way.stall_at:
            way.silent_until = now + way.stall_s
            way.stall_at = None
            way.on_fault("stall")
        at = max(now + way.latency_s, way.silent_until, way.last_at)
        if at - now > self._user_timeout_s and isinstance(what, bytes):
            # the kernel gives up before the line speaks again: these bytes never arrive, and both sides hear of it
            self._loop.call_later(self._user_timeout_s, self._give_up, context=_NOBODY)
            return
        way.last_at = at
        parcel = [what]
        self._under_way.append(parcel)
        self._loop.call_at(at, self._arrive, parcel, context=_NOBODY)

    def _cut(self) -> None:
        """Somebody between the two ends this connection; from now on nothing passes."""
        way, peer = self.way, self.peer
        way.on_fault("cut")
        assert peer is not None
        way.is_dead = True
        parcel = [way.cut_end]
        at = max(self._loop.time() + way.latency_s, way.last_at)
        self._under_way.append(parcel)
        self._loop.call_at(at, self._arrive, parcel, context=_NOBODY)
        self._loop.call_at(at, self._break, ConnectionResetError(errno.ECONNRESET, "reset"), context=_NOBODY)

    def _give_up(self) -> None:
        self._under_way.clear()
        self._break(TimeoutError(errno.ETIMEDOUT, "timed out"))
        if self.peer is not None:
            self.peer._break(ConnectionResetError(errno.ECONNRESET, "reset"))

    def _arrive(self, parcel: list[Any]) -> None:
        """At the other end, unless it was dropped on the way."""
        if parcel not in self._under_way:
            return
        self._under_way.remove(parcel)
        what, peer = parcel[0], self.peer
        assert peer is not None
        if isinstance(what, bytes):
            self._queued -= len(what)
            if peer.closed or peer.broken is not None:
                # what comes to a closed end is answered with a reset
                self._break(ConnectionResetError(errno.ECONNRESET, "reset"))
                return
            peer.inbox += what
            peer._heard()
        elif what == FIN:
            peer.ended = True
            peer._heard()
        else:
            peer._break(ConnectionResetError(errno.ECONNRESET, "reset"))

    def _break(self, error: OSError) -> None:
        if self.broken is None and not self.closed:
            self.broken = error
            self._under_way.clear()
            self._heard()
            self._has_room()

    def _heard(self) -> None:
        if self.on_news is not None and not self.closed:
            self.on_news()

    def _has_room(self) -> None:
        if self.on_room is not None and not self.closed:
            self.on_room()


def connected(client: SimSocket, server: SimSocket) -> None:
    """The two are the ends of one connection."""
    client.peer, server.peer = server, client
