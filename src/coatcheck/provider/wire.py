"""The one billable POST: one request on one connection of its own, sent at most once, with exact evidence of how far it got.

No redirect is followed, nothing is sent again, no proxy is taken from the environment. Before every send the clock that also runs while
the process is stopped is asked: no first byte leaves after `send_by`, no byte after the POST's end; what is unsent by then is dropped by a
reset. Only `workers/dispatch` calls `post`, and a test counts the callers.
"""

import asyncio
import ssl

from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.core.frozen import frozen
from coatcheck.provider.connecting import NotConnectedError, line_to
from coatcheck.provider.heading import fields
from coatcheck.provider.line import Line
from coatcheck.provider.origin import Origin, split_url
from coatcheck.provider.progress import Progress
from coatcheck.provider.reply import ReplyReader
from coatcheck.seams import Point, Seams


@frozen
class SendWindow:
    """When the POST may begin and how long it may last.

    `send_by` is an instant of `Clock.boottime()`: read before the mark was handed to `save`, plus SEND_S. `limit_s` is TIMEOUT_S.
    """

    send_by: float
    limit_s: float

    def end_by(self, began: float) -> float:
        """The instant after which no byte is sent; never later than `send_by` + `limit_s`, on which `quiescent_at` relies."""
        return min(began, self.send_by) + self.limit_s


class _EndedError(Exception):
    """The exchange ended before its reply was whole. The message is the failure's word."""


async def post(
    request: Request, *, window: SendWindow, progress: Progress, tls: ssl.SSLContext, seams: Seams
) -> Exchange:
    """Send `request` once and read the reply. Remote faults are in the value, never raised.

    Cancellation resets the connection and goes on as CancelledError; then, as after any surprise, `progress.exchange()` is the evidence.

    `await post(adapter.create(text, dispatch_id=dispatch_id), window=window, progress=Progress(seams.clock), tls=tls, seams=seams)`
    """
    try:
        await _course(request, window=window, progress=progress, tls=tls, seams=seams)
    except (_EndedError, NotConnectedError) as end:
        progress.failed(str(end))
    except asyncio.CancelledError:
        progress.failed("cancelled")
        raise
    finally:
        progress.failed("unforeseen")
    return progress.exchange()


async def _course(
    request: Request, *, window: SendWindow, progress: Progress, tls: ssl.SSLContext, seams: Seams
) -> None:
    end_by = window.end_by(seams.clock.boottime())
    try:
        origin, target = split_url(request.url)
        message = _message(request, origin, target)
    except ValueError:
        raise _EndedError("bad_request") from None
    until = min(window.send_by, end_by)
    line = await line_to(origin, until=until, limit_s=window.limit_s, tls=tls, seams=seams, progress=progress)
    reader = ReplyReader("POST", progress)
    try:
        leg = _Leg(
            line=line,
            message=memoryview(message),
            reader=reader,
            progress=progress,
            until=until,
            end_by=end_by,
            seams=seams,
        )
        await leg.run()
    finally:
        line.close()


def _message(request: Request, origin: Origin, target: str) -> bytes:
    """Head and body as they go over the line. The body is the request's, byte for byte."""
    if request.method != "POST":
        raise ValueError("expected a POST")
    head = fields(origin, request.headers, is_last=True)
    return b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (
        target.encode(),
        head,
        len(request.body),
        request.body,
    )


class _Leg:
    """One request going out and one reply coming in, on one line, in one loop: an early reply ends the sending."""

    def __init__(
        self,
        *,
        line: Line,
        message: memoryview,
        reader: ReplyReader,
        progress: Progress,
        until: float,
        end_by: float,
        seams: Seams,
    ) -> None:
        self._line = line
        self._unsent = message
        self._reader = reader
        self._progress = progress
        self._until = until
        self._end_by = end_by
        self._clock = seams.clock
        self._faults = seams.faults
        self._sleep = seams.sleep
        self._broken: str | None = None

    async def run(self) -> None:
        """Return when the reply is whole or never will be. Raises _EndedError."""
        while True:
            # Hearing comes first: a reply that is here already counts, however late this process wakes.
            heard = self._hear()
            if self._reader.over:
                return
            self._say()
            if heard:
                # who says much does not keep everybody else from their turn
                await self._sleep(0)
            else:
                await self._ready()

    @property
    def _owing(self) -> bool:
        return bool(self._unsent or self._line.busy) and not self._progress.answer_begun and self._broken is None

    def _say(self) -> None:
        """Hand some more of the request to the kernel. The clock is asked last before the send."""
        owing = self._owing
        if owing:
            self._line.expire(self._end_by - self._clock.boottime())
        now = self._clock.boottime()
        if not self._progress.bytes_sent and now >= self._until:
            raise _EndedError("send_window_passed")
        if now >= self._end_by:
            raise _EndedError("timeout")
        if not owing:
            return
        try:
            count = self._line.send(self._unsent)
        except OSError as error:
            self._break(error)
        else:
            self._said(count)

    def _said(self, count: int) -> None:
        self._progress.sent(count)
        self._unsent = self._unsent[count:]
        if count:
            self._faults.reached(Point.D7_REQUEST_BYTES, self._progress.bytes_sent)
        if not self._unsent and not self._line.busy:
            self._progress.reached(Stage.BODY_SENT)
            self._faults.reached(Point.D8_REQUEST_COMPLETE)

    def _break(self, error: OSError) -> None:
        """Sending failed. A reply may be here all the same, so hearing goes on until the stream ends."""
        self._broken = _cause(error)
        if not self._progress.bytes_sent:
            raise _EndedError(self._broken)

    def _hear(self) -> bool:
        """Take what came in; whether anything did. Before the first byte left, nothing that is said can be our reply."""
        if not self._progress.bytes_sent:
            return False
        try:
            data = self._line.receive()
        except OSError as error:
            raise _EndedError(self._broken or _cause(error)) from None
        if data is None:
            return False
        self._heard(data)
        return True

    def _heard(self, data: bytes) -> None:
        if data:
            self._progress.received(len(data))
            self._faults.reached(Point.D9_RESPONSE_BYTES, self._progress.bytes_received)
            self._reader.feed(data)
        else:
            self._reader.end(self._broken or "closed", orderly=self._line.orderly)
        if self._progress.complete:
            self._faults.reached(Point.D10_RESPONSE_COMPLETE)

    async def _ready(self) -> None:
        # the end of this wait is not the end of the exchange: the loop asks the clock that counts
        await self._line.ready(sending=self._owing, within_s=self._end_by - self._clock.boottime())


def _cause(error: OSError) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case ConnectionResetError() | BrokenPipeError():
            return "reset"
        case _:
            return "broken"
