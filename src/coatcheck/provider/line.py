"""A connected non-blocking socket, clear or under TLS, that tells exactly what it handed to the kernel.

Every send is one system call made when its caller says so: nothing is kept in a buffer that goes on writing by itself (an asyncio
transport does: after a stop, measured, a whole body arrived past its limit).
"""

import asyncio
import socket
import ssl
from typing import Final

from coatcheck.seams import Socket, wake

RECEIVE_BYTES: Final = 256 * 1024
SEND_BYTES: Final = 64 * 1024
RECORD_BYTES: Final = 16 * 1024
"""Plaintext of one TLS record."""


class Line:
    """The clear line. Owns the socket; `close` resets the connection, as its SO_LINGER says."""

    orderly = True
    """Whether the end of the received stream, once seen, was meant by the other side."""

    def __init__(self, connected: Socket) -> None:
        self._socket = connected

    @property
    def busy(self) -> bool:
        """Whether bytes that were counted as sent are not all in the kernel yet."""
        return False

    def send(self, data: memoryview) -> int:
        """Bytes at the head of `data` that count as handed over by one send; 0 when the kernel takes none now. Raises OSError."""
        try:
            return self._socket.send(data[:SEND_BYTES])
        except BlockingIOError:
            return 0

    def receive(self) -> bytes | None:
        """What came in; empty at the end of the stream, None when there is nothing now. Raises OSError."""
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None

    def expire(self, seconds: float) -> None:
        """Tell the kernel to give up on unacknowledged bytes after `seconds`, whatever becomes of this process."""
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, int(seconds * 1000)))

    async def ready(self, *, sending: bool, within_s: float) -> None:
        """Wait until there is something to receive or, if `sending`, until the kernel takes more; for `within_s` seconds at most."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        descriptor = self._socket.fileno()
        timer = loop.call_later(within_s, wake, woken)
        loop.add_reader(descriptor, wake, woken)
        if sending:
            loop.add_writer(descriptor, wake, woken)
        try:
            await woken
        finally:
            timer.cancel()
            loop.remove_reader(descriptor)
            if sending:
                loop.remove_writer(descriptor)

    def close(self) -> None:
        """Reset the connection; bytes that the kernel still holds are dropped."""
        self._socket.close()


class TlsLine(Line):
    """The line under TLS. A record counts with its whole plaintext once its first byte is in the kernel: never too little is counted."""

    def __init__(self, connected: Socket, context: ssl.SSLContext, host: str) -> None:
        super().__init__(connected)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._sealed = b""
        self._uncounted = 0
        self._closed = False
        self.orderly = False

    async def handshake(self) -> None:
        """Agree on keys and check the certificate. No byte of the request leaves here. Raises OSError (ssl.SSLError is one)."""
        loop = asyncio.get_running_loop()
        agreed = False
        while not agreed:
            try:
                self._tls.do_handshake()
                agreed = True
            except ssl.SSLWantReadError:
                pass
            if self._outgoing.pending:
                await loop.sock_sendall(self._socket, self._outgoing.read())
            if not agreed:
                self._take_in(await loop.sock_recv(self._socket, RECEIVE_BYTES))

    @property
    def busy(self) -> bool:
        """Whether a part of a counted record still waits for the kernel."""
        return bool(self._sealed)

    def send(self, data: memoryview) -> int:
        """As the clear line does; a record that the kernel took in part is finished before the next is made."""
        if not self._sealed and data:
            self._seal(data[:RECORD_BYTES])
        handed = super().send(memoryview(self._sealed)) if self._sealed else 0
        self._sealed = self._sealed[handed:]
        if not handed:
            return 0
        counted, self._uncounted = self._uncounted, 0
        return counted

    def _seal(self, piece: memoryview) -> None:
        try:
            self._uncounted = self._tls.write(piece)
        except ssl.SSLWantReadError:
            return
        self._sealed = self._outgoing.read()

    def receive(self) -> bytes | None:
        """The plaintext of what came in; the stream ends in order only by the other side's close notice."""
        raw = b"" if self._closed else super().receive()
        if raw is None:
            return None
        self._take_in(raw)
        plain = self._opened()
        return plain if plain or self._closed else None

    def _opened(self) -> bytes:
        plain = bytearray()
        try:
            while part := self._tls.read(RECEIVE_BYTES):
                plain += part
            self._closed = self.orderly = True
        except ssl.SSLWantReadError:
            self._sealed += self._outgoing.read()
        except ssl.SSLZeroReturnError:
            self._closed = self.orderly = True
        except ssl.SSLEOFError:
            self._closed = True
        return bytes(plain)

    def _take_in(self, raw: bytes) -> None:
        if raw:
            self._incoming.write(raw)
        else:
            self._incoming.write_eof()
