"""Builders for tests of the wire: a request, a window, and one POST with its verdict."""

import socket
import ssl
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from coatcheck.core.classify import Rules, classify
from coatcheck.core.events import NotSent, Reply
from coatcheck.core.evidence import Exchange, Request
from coatcheck.core.operation import DispatchId
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Clock, Connect, Faults, Point, Seams

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=7))
RULES = Rules(id_path=("job_id",), failure_id_path=("error", "job_id"))
TLS = secure_context()


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What one POST came to."""

    exchange: Exchange
    reply: Reply


class Recorder(Faults):
    """Remembers which points were passed."""

    def __init__(self) -> None:
        self.seen: list[tuple[Point, int]] = []

    def reached(self, point: Point, count: int = 0) -> None:
        self.seen.append((point, count))


def request_to(url: str, *, body: bytes = b'{"prompt":"a red bird"}') -> Request:
    return Request(
        method="POST",
        url=f"{url}/api/v1/jobs",
        headers=(("Authorization", "Bearer secret-key"), ("Content-Type", "application/json")),
        body=body,
    )


async def send(
    request: Request,
    *,
    limit_s: float = 10.0,
    send_s: float = 5.0,
    seams: Seams | None = None,
    tls: ssl.SSLContext = TLS,
) -> Posted:
    seams = seams or Seams.real()
    window = SendWindow(send_by=seams.clock.boottime() + send_s, limit_s=limit_s)
    exchange = await post(request, window=window, progress=Progress(seams.clock), tls=tls, seams=seams)
    return Posted(exchange=exchange, reply=classify(exchange, dispatch_id=DISPATCH, rules=RULES, now=NOW))


def watched(seams: Seams, faults: Faults) -> Seams:
    return replace(seams, faults=faults)


def not_sent(cause: str) -> NotSent:
    return NotSent(dispatch_id=DISPATCH, cause=cause)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Resolving(Connect):
    """Answers every name with addresses of the test's choice."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
        if not self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, address) for address in self._addresses]


class MovedClock(Clock):
    """The real clock, ahead by as much as the test says."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def boottime(self) -> float:
        return super().boottime() + self.ahead


class Stride(Faults):
    """Moves the clock when a point is passed, as if the process had been stopped there."""

    def __init__(self, clock: MovedClock, point: Point, seconds: float) -> None:
        self._clock, self._point, self._seconds = clock, point, seconds

    def reached(self, point: Point, count: int = 0) -> None:
        if point is self._point:
            self._clock.ahead = self._seconds
