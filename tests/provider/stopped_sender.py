"""A process of its own that sends one large POST and stops itself at a point; it prints the failure and the bytes that it sent.

The window is half a second and so is the limit, counted from before the stop.
"""

import asyncio
import os
import signal
import sys

from coatcheck.core.evidence import Request
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Faults, Point, Seams


class StopHere(Faults):
    """Stops the process the first time that the point is passed."""

    def __init__(self, point: Point) -> None:
        self._point: Point | None = point

    def reached(self, point: Point, count: int = 0) -> None:
        if point is self._point:
            self._point = None
            os.kill(os.getpid(), signal.SIGSTOP)


async def main(url: str, point: str) -> None:
    seams = Seams(faults=StopHere(Point(point)))
    request = Request(method="POST", url=url, body=b"x" * (64 << 20))
    window = SendWindow(send_by=seams.clock.boottime() + 0.5, limit_s=0.5)
    progress = Progress(seams.clock)
    exchange = await post(request, window=window, progress=progress, tls=secure_context(), seams=seams)
    print(exchange.failure, exchange.bytes_sent)  # noqa: T201 - the test reads it


asyncio.run(main(sys.argv[1], sys.argv[2]))
