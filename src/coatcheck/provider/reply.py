"""Reading the reply to the one POST with h11: bounded, strict, and one reply only. Interim replies (1xx) are not the reply.

The body is whole when its own framing says so. A body that only the end of the connection delimits is whole when that end was orderly, and
the evidence says that nothing better vouches for it.
"""

from typing import Final

import h11

from coatcheck.provider.coding import decoded
from coatcheck.provider.progress import Progress

HEAD_LIMIT: Final = 64 * 1024
"""Bytes of the longest status line with headers, chunk header or trailer."""

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of the longest body, as sent and as decoded."""


class ReplyReader:
    """Turns received bytes into progress. `connection` has sent the head of its request, as far as h11 knows."""

    def __init__(self, connection: h11.Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress
        self._end: str | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more can come of reading on: the reply is whole, or it is known that it will never be."""
        return self._progress.complete or self._progress.failure is not None

    def feed(self, data: bytes) -> None:
        """Take what was received; never empty."""
        self._read(data)

    def end(self, cause: str, *, orderly: bool) -> None:
        """The other side ended the connection. `cause` is the failure's word if the reply is not whole by that."""
        self._end = "" if orderly else cause
        self._read(b"")
        self._progress.failed(cause)

    def _read(self, data: bytes) -> None:
        try:
            self._connection.receive_data(data)
            while not self.over and self._step():
                pass
        except h11.RemoteProtocolError:
            if data:
                self._progress.failed("malformed_reply")

    def _step(self) -> bool:
        """One event of h11; False when it wants more bytes."""
        match self._connection.next_event():
            case h11.InformationalResponse():
                return True
            case h11.Response(status_code=status, headers=headers):
                named = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
                self._progress.answered(status, named)
                return True
            case h11.Data(data=part):
                self._take(bytes(part))
                return True
            case h11.EndOfMessage():
                self._finish()
                return False
            case _:
                return False

    def _take(self, part: bytes) -> None:
        room = BODY_LIMIT - self._progress.body_count
        self._progress.took(part[:room])
        if len(part) > room:
            self._progress.failed("too_large")

    def _finish(self) -> None:
        if self._end:
            self._progress.failed(self._end)
            return
        body = decoded(self._progress.body, self._progress.header("Content-Encoding"), limit=BODY_LIMIT)
        if body is None:
            self._progress.failed("undecodable")
        else:
            # Only a body that the end delimits waits for that end.
            self._progress.finished(body, framed=self._end is None)
