"""One delivery in a process of its own: killed at a point, or measured to the end. Started by the tests beside it."""

import asyncio
import ipaddress
import itertools
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coatcheck.delivery.addresses import HostPolicy
from coatcheck.delivery.fetch import Deliverer
from coatcheck.delivery.file_sink import FileSink
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import OutputSource, Stored
from coatcheck.seams import Faults, Point, Seams


class Killed(Faults):
    """Dies at `point`, without a word."""

    def __init__(self, point: Point, count: int) -> None:
        self._point = point
        self._count = count

    def reached(self, point: Point, count: int = 0) -> None:
        if point == self._point and count >= self._count:
            os.kill(os.getpid(), signal.SIGKILL)


CALLS = ("open", "mkdir", "write", "fsync", "link", "unlink", "close")


def kill_before_call(nth: int) -> None:
    """Dies before the sink's `nth` call of the system, without a word."""
    count = itertools.count()

    def doomed(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread().name.startswith("coatcheck-sink") and next(count) == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in CALLS:
        setattr(os, name, doomed(getattr(os, name)))


def peak_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def main(root: str, port: str, outputs: str, point: str = "", count: str = "0") -> None:
    faults = Killed(Point(point), int(count)) if point and point != "call" else Faults()
    if point == "call":
        kill_before_call(int(count))
    seams = Seams(faults=faults)
    policy = HostPolicy(
        own_origin=None,
        allow_http_hosts=frozenset({"127.0.0.1"}),
        allow_networks=(ipaddress.ip_network("127.0.0.1/32"),),
        allow_ports=frozenset({int(port)}),
    )
    room = Deliverer(sink=FileSink(Path(root), seams=seams), policy=policy, limits=Limits(), seams=seams)
    peaks = []
    results = []
    for output in json.loads(outputs):
        results.append(await room.deliver(OutputSource(**output)))
        peaks.append(peak_bytes())
    stored = [result.sha256 for result in results if isinstance(result, Stored)]
    sys.stdout.write(json.dumps({"peaks": peaks, "stored": stored}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
