"""Reading one reply: bounded, strict, and nothing after it. A head in its plainest form is read at once, all else by h11. Interim replies (1xx) are not the reply.

The body is whole when its own framing says so. A body that only the end of the connection delimits is whole when that end was orderly, and
the evidence says that nothing better vouches for it.
"""

from functools import lru_cache
from typing import Final

import h11

from coatcheck.provider.coding import decoded
from coatcheck.provider.plain import HEAD_LIMIT, PlainHead, plain_head
from coatcheck.provider.progress import Progress

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of the longest body, as sent and as decoded."""
INTERIM_LIMIT: Final = 16
"""Interim replies before the reply. Usual services send one at most."""
FRAMED_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of all that is read of a reply: a body of the longest length in chunks of one byte has seven of these."""


class ReplyReader:
    """Turns received bytes into progress: `ReplyReader("POST", progress)`. What was sent of the request does not matter here, only its method does."""

    __slots__ = ("_awaited", "_end", "_head", "_interim_count", "_judge", "_method", "_progress", "_surplus")

    def __init__(self, method: str, progress: Progress) -> None:
        self._method = method
        self._progress = progress
        self._end: str | None = None
        self._judge: h11.Connection | None = None
        self._head: PlainHead | None = None
        """Where it is of the plainest form there is no judge, and so many bytes of the body are still awaited."""
        self._awaited = 0
        self._interim_count = 0
        self._surplus = False

    @property
    def over(self) -> bool:
        """Whether nothing more can come of reading on: the reply is whole, or it is known that it will never be."""
        return self._progress.complete or self._progress.failure is not None

    @property
    def leaves_open(self) -> bool:
        """Whether another request may go over the connection: the reply was whole, nothing came after it, and its sender does not close."""
        if not self._progress.complete or self._surplus:
            return False
        if self._head is not None:
            return self._head.leaves_open
        return self._judge is not None and self._judge.their_state is h11.DONE and not self._judge.trailing_data[0]

    def feed(self, data: bytes) -> None:
        """Take what was received; never empty."""
        if self._head is None and self._judge is None:
            data = self._begun(data)
        if self._judge is None:
            self._counted(data)
        elif self._progress.bytes_received > FRAMED_LIMIT:
            self._progress.failed("too_large")
        else:
            self._judged(data, self._judge)

    def end(self, cause: str, *, orderly: bool) -> None:
        """The other side ended the connection. `cause` is the failure's word if the reply is not whole by that."""
        self._end = "" if orderly else cause
        if self._judge is not None:
            self._judged(b"", self._judge)
        self._progress.failed(cause)

    def _begun(self, data: bytes) -> bytes:
        """Settle who reads on; what of `data` is left to read."""
        head = self._head = plain_head(data)
        if head is None:
            self._judge = _judge_of(self._method)
            return data
        self._progress.answered(head.status, head.headers)
        self._awaited = head.length
        return data[head.size :]

    def _counted(self, data: bytes) -> None:
        """What is awaited of a body whose length is known."""
        self._take(data[: self._awaited])
        self._surplus = len(data) > self._awaited
        self._awaited = max(0, self._awaited - len(data))
        if not self._awaited and not self.over:
            self._finish()

    def _judged(self, data: bytes, judge: h11.Connection) -> None:
        """As far as h11 can say."""
        try:
            judge.receive_data(data)
            while not self.over and self._step(judge):
                pass
        except h11.RemoteProtocolError:
            if data:
                self._progress.failed("malformed_reply")

    def _step(self, judge: h11.Connection) -> bool:
        """One event of h11; False when it wants more bytes."""
        match judge.next_event():
            case h11.InformationalResponse():
                self._interim_count += 1
                if self._interim_count > INTERIM_LIMIT:
                    self._progress.failed("malformed_reply")
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
        body = decoded(self._progress.body, self._progress.header("content-encoding"), limit=BODY_LIMIT)
        if body is None:
            self._progress.failed("undecodable")
        else:
            # Only a body that the end delimits waits for that end.
            self._progress.finished(body, framed=self._end is None)


@lru_cache(maxsize=8)
def _request(method: str) -> h11.Request:
    return h11.Request(method=method, target="/", headers=[("Host", "any")])


def _judge_of(method: str) -> h11.Connection:
    """A connection that reads the reply to a request. What h11 counts as sent is not what is sent: it judges a reply by the method alone."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
    connection.send(_request(method))
    return connection
