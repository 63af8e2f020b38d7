"""How far one exchange got, kept while it goes on. The caller owns it, so that the evidence outlives a cancelled or broken `post`.

Numbers and stages only rise; `exchange()` may be asked for at any moment and tells the truth of that moment.
"""

from typing import Final

from coatcheck.core.evidence import Exchange, Stage, first_value
from coatcheck.seams import Clock

_ORDER: Final = {stage: stage.rank for stage in Stage}


class Progress:
    """The evidence of one exchange so far. `Progress(seams.clock)`, one for each request."""

    # thousands are kept while looks are held open
    __slots__ = (
        "_began",
        "_body",
        "_clock",
        "_framed",
        "_headers",
        "_marks",
        "_status",
        "bytes_received",
        "bytes_sent",
        "complete",
        "failure",
        "stage",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.boottime()
        self._marks: dict[Stage, int] = {Stage.MARKED: 0}
        self._body = bytearray()
        self._status: int | None = None
        self._headers: tuple[tuple[str, str], ...] = ()
        self.stage = Stage.MARKED
        self.bytes_sent = 0
        self.bytes_received = 0
        self.complete = False
        self._framed = False
        self.failure: str | None = None

    def reached(self, stage: Stage) -> None:
        """The exchange got as far as `stage`; an earlier stage than the present one changes nothing."""
        if _ORDER[stage] > _ORDER[self.stage]:
            self.stage = stage
            self._marks[stage] = round((self._clock.boottime() - self._began) * 1000)

    def sent(self, count: int) -> None:
        """`count` more bytes of the request were handed to the kernel."""
        self.bytes_sent += count
        if count:
            self.reached(Stage.HEADERS_BEGUN)

    def received(self, count: int) -> None:
        """`count` more bytes came from the other side."""
        self.bytes_received += count

    def answered(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """The status line and the headers of the one final reply are here."""
        self._status, self._headers = status, headers
        self.reached(Stage.STATUS_RECEIVED)

    def took(self, part: bytes) -> None:
        """The next part of the reply's body."""
        self._body += part

    def finished(self, body: bytes, *, framed: bool) -> None:
        """The reply's body is whole and decodes to `body`; `framed` when a length or chunks said where it ends."""
        self._body[:] = body
        self.complete, self._framed = True, framed
        self.reached(Stage.BODY_RECEIVED)

    def failed(self, cause: str) -> None:
        """The exchange ended before its reply was whole. The first cause stays: what follows a failure is its consequence."""
        if not self.complete and self.failure is None:
            self.failure = cause

    @property
    def answer_begun(self) -> bool:
        """Whether a final reply began: nothing more of the request is of use."""
        return self._status is not None

    @property
    def body(self) -> bytes:
        """The reply's body so far."""
        return bytes(self._body)

    @property
    def body_count(self) -> int:
        """Bytes of the reply's body so far."""
        return len(self._body)

    def header(self, name: str) -> str | None:
        """The first value of a header of the reply."""
        return first_value(self._headers, name)

    def exchange(self) -> Exchange:
        """The evidence as a value."""
        return Exchange(
            stage=self.stage,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
            status=self._status,
            headers=self._headers,
            body=bytes(self._body),
            complete=self.complete,
            framed=self._framed,
            failure=self.failure,
            marks_ms=tuple(self._marks.items()),
        )
