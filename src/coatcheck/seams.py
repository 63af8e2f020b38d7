"""What tests replace: the only module that may ask for time, chance, identity, a process or a connection.

Everything above `core` is handed one `Seams` value. Production uses `Seams.real()`; a test, a fault run or a simulation swaps single
members. A lint bans the originals everywhere else, so nothing can depend on them unseen.
"""

import asyncio
import enum
import errno
import os
import random
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Final, Protocol

if hasattr(uuid, "uuid7"):
    _uuid7: Callable[[], uuid.UUID] = uuid.uuid7
else:
    import uuid_utils.compat

    _uuid7 = uuid_utils.compat.uuid7


_FASTER: Final = "uvloop"

Socket = socket.socket
"""The type of what `Connect` hands out, for those who are handed one: only this module may make one."""

Addresses = list[tuple[socket.AddressFamily, tuple[str, int]]]
"""What a name stands for."""


class Point(enum.StrEnum):
    """The named places of an action's course at which a fault may strike (kill, stop, raise, cut).

    Letters: E enqueue, X claim, D dispatch, O observe, V deliver, R reconcile, K passing a cancel on, S spool, M a committer's batch, L a
    lease's renewal and end, B what a worker does in the background, C a person's or a tenant's command. The claim is the relay here: nothing
    is published between the outbox and a worker, so X2 and X4 do not exist. Hooks that come in (W) have points once there is a door for them.
    """

    E1_BEFORE_BEGIN = "E1"
    E2_OPERATION_INSERTED = "E2"
    E3_OUTBOX_INSERTED = "E3"
    E4_COMMIT_SENT = "E4"
    E5_COMMITTED_BEFORE_REPLY = "E5"
    X1_CLAIMED = "X1"
    X3_CLAIM_COMMIT_SENT = "X3"
    D1_RECEIVED = "D1"
    D2_LOADED = "D2"
    D3_CHECKED = "D3"
    D4_MARK_COMMIT_SENT = "D4"
    D5_MARK_DURABLE = "D5"
    D6_CONNECTING = "D6"
    D7_REQUEST_BYTES = "D7"
    D8_REQUEST_COMPLETE = "D8"
    D9_RESPONSE_BYTES = "D9"
    D10_RESPONSE_COMPLETE = "D10"
    D11_PARSED = "D11"
    D12_SAVE_COMMIT_SENT = "D12"
    D13_SAVED = "D13"
    D14_ACKNOWLEDGED = "D14"
    O1_RECEIVED = "O1"
    O2_LOADED = "O2"
    O3_GET_SENT = "O3"
    O4_RESPONSE_BYTES = "O4"
    O5_VALIDATED = "O5"
    O6_SAVE_COMMIT_SENT = "O6"
    O7_SAVED = "O7"
    O8_ACKNOWLEDGED = "O8"
    V1_RECEIVED = "V1"
    V2_LOADED = "V2"
    V3_RESOLVED = "V3"
    V4_CONNECTED = "V4"
    V5_BODY_BYTES = "V5"
    V6_BODY_COMPLETE = "V6"
    V7_VERIFIED = "V7"
    V8_PUBLISHED = "V8"
    V9_SAVE_COMMIT_SENT = "V9"
    V10_SAVED = "V10"
    V11_ACKNOWLEDGED = "V11"
    R1_SCANNED = "R1"
    R2_EVIDENCE_READ = "R2"
    R3_DECISION_COMMIT_SENT = "R3"
    R4_DECIDED = "R4"
    K1_CANCEL_SENT = "K1"
    K2_CANCEL_ANSWERED = "K2"
    K3_ANSWER_COMMIT_SENT = "K3"
    K4_ANSWER_SAVED = "K4"
    S1_APPENDING = "S1"
    S2_SPOOLED = "S2"
    S3_TAKEN = "S3"
    S4_REPLAYED = "S4"
    S5_REMOVED = "S5"
    M1_BATCH_SENT = "M1"
    M2_BATCH_ANSWERED = "M2"
    L1_RENEWAL_SENT = "L1"
    L2_RENEWED = "L2"
    L3_END_SENT = "L3"
    L4_ENDED = "L4"
    B1_REPORT_SENT = "B1"
    B2_REPORTED = "B2"
    B3_COMPARISON_SENT = "B3"
    B4_COMPARED = "B4"
    B5_LOOK_REPORT_SENT = "B5"
    B6_LOOK_REPORTED = "B6"
    C1_AUTHORISED = "C1"
    C2_COMMAND_COMMIT_SENT = "C2"
    C3_APPLIED = "C3"


_boottime: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


class Clock:
    """Local time. No rule about leases rests on it: the database owns those."""

    def boottime(self) -> float:
        """Seconds since boot, suspend and SIGSTOP included (CLOCK_BOOTTIME): the clock of send deadlines."""
        return _boottime()

    def now(self) -> datetime:
        """Wall clock in UTC: for display and for reading a service's dates, never for a decision about leases."""
        return datetime.now(UTC)


class Sleep(Protocol):
    """Waits without blocking the event loop."""

    async def __call__(self, seconds: float) -> None:
        """Wait `seconds`."""


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


class Pause(Protocol):
    """Waits and blocks the thread: for code that runs before or beside any event loop."""

    def __call__(self, seconds: float, /) -> None:
        """Wait `seconds`."""


class Ids:
    """Identities: version 7 UUIDs, so that new rows land at the right end of an index."""

    def uuid7(self) -> uuid.UUID:
        """A fresh time-ordered id."""
        return _uuid7()

    def incarnation(self) -> str:
        """A worker's name for one life of one process; never reused."""
        return f"{socket.gethostname()[:40]}-{uuid.uuid4().hex[:12]}"


def loop_name() -> str:
    """Whose event loop a worker has: uvloop's where that is installed, which takes less of the processor, and else asyncio's own."""
    return asyncio.__name__ if find_spec(_FASTER) is None else _FASTER


def new_loop() -> asyncio.AbstractEventLoop:
    """A worker's event loop, as `loop_name` says."""
    made: asyncio.AbstractEventLoop = import_module(loop_name()).new_event_loop()
    return made


class Jitter:
    """Chance for spreading work over time; never for anything that decides."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - spreading load, not secrecy

    def between(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        return self._random.uniform(low, high)


class Spawn:
    """Starts child processes: the embedded PostgreSQL, the demo's workers."""

    def __call__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: IO[bytes] | None = None,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        user: int | None = None,
        group: int | None = None,
        cwd: str | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start `arguments` without a shell; the child inherits no descriptor but the three given (stdin: nothing, if not given).

        With `user` the child runs as that account and in `group` alone. Raises OSError when the program cannot be executed.
        """
        extra: list[int] | None = [] if user is not None else None
        return subprocess.Popen(  # noqa: S603 - no shell; every caller builds its own argument list
            arguments,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout,
            stderr=stderr,
            user=user,
            group=group,
            extra_groups=extra,
            cwd=cwd,
            close_fds=True,
        )


class Connect:
    """Makes the sockets to services and outputs, non-blocking and unconnected, and resolves names for whoever chooses among addresses."""

    async def resolve(self, host: str, port: int) -> Addresses:
        """Addresses of `host` in the resolver's order. Raises OSError when the name is unknown."""
        if is_address(host):
            return [(socket.AF_INET, (host, port))]
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, (str(address[0]), int(address[1]))) for family, _, _, _, address in found]

    def socket(self, family: socket.AddressFamily) -> socket.socket:
        """A fresh non-blocking stream socket."""
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        return made

    async def dial(self, fresh: Socket, address: tuple[str, int]) -> None:
        """Connect it to an address of `resolve`. Raises OSError.

        The event loop's own `sock_connect` asks its resolver for what is resolved already; uvloop's takes as long for that as for all the rest (decision 33).
        """
        error = fresh.connect_ex(address)
        if error == errno.EINPROGRESS:
            loop = asyncio.get_running_loop()
            decided: asyncio.Future[None] = loop.create_future()
            descriptor = fresh.fileno()
            loop.add_writer(descriptor, wake, decided)
            try:
                await decided
            finally:
                loop.remove_writer(descriptor)
            error = fresh.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))


def wake(waiting: asyncio.Future[None]) -> None:
    """End a wait, unless it ended already: a descriptor may be ready, and a timer over, in the very turn in which somebody stops waiting."""
    if not waiting.done():
        waiting.set_result(None)


def is_address(host: str) -> bool:
    """Whether it is an IPv4 address in its usual form: that needs no thread in which the resolver says the same."""
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError):
        return False
    return True


class Faults:
    """Named points of the course. Production does nothing at any of them."""

    def reached(self, point: Point, count: int = 0) -> None:
        """The course passed `point`; `count` is the number of bytes at the byte-indexed ones, and of messages at a claim."""


NO_FAULTS: Final = Faults()
"""For whoever is handed none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """The bundle that is handed down from the composition root."""

    clock: Clock = field(default_factory=Clock)
    sleep: Sleep = _sleep
    pause: Pause = time.sleep
    ids: Ids = field(default_factory=Ids)
    jitter: Jitter = field(default_factory=Jitter)
    spawn: Spawn = field(default_factory=Spawn)
    connect: Connect = field(default_factory=Connect)
    faults: Faults = field(default_factory=Faults)

    @classmethod
    def real(cls) -> "Seams":
        """What production runs on."""
        return cls()
