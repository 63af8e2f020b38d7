"""The port to a remote service, callback by callback. An adapter is pure: it never does I/O, never asks for the time, never raises on data.

So an adapter is tested from recorded replies, and no client library's hidden resend can slip between the mark and the one POST. The port
comes in two halves, so that who observes cannot even name the call that spends money (S9).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from coatcheck.core.events import Reply, Snapshot
from coatcheck.core.evidence import Exchange, Request
from coatcheck.core.operation import DispatchId, RemoteJobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A whole, well-formed snapshot of the job that was asked for. `retry_after_s`: when the service wants the next look, clamped."""

    snapshot: Snapshot
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StillWaiting:
    """The wait window closed without news: not an error, not a failure."""

    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transient:
    """Nothing was learned about the job; look again later. `cause` is a short word of ours, or `status_` and the status."""

    cause: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """The service says that it does not know the job. Whether to believe it is the machine's to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The credential may not look. Says nothing about the render."""

    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonsense:
    """A protocol incident: the service answered, and the answer cannot be about this job. `kind`: wrong_id | malformed.

    `detail` names the place, never the content.
    """

    kind: str
    detail: str


Look = Seen | StillWaiting | Transient | Absent | Denied | Nonsense
"""What one GET of a remote job brought back."""


class Getter(Protocol):
    """Carries out GETs, and GETs only: what observing is handed instead of a client."""

    async def get(self, request: Request, *, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` seconds in all. Remote faults are in the value, never raised."""


class LookPort(Protocol):
    """The half that is free and repeatable: all that observing and reconciling ever see of an adapter."""

    def look(self, remote_job_id: RemoteJobId, wait_s: float) -> Request:
        """The GET that asks for one job and lets the service hold the answer back for up to `wait_s` seconds.

        Whatever the id contains, it stays one segment of the path.
        """

    def seen(self, exchange: Exchange, *, remote_job_id: RemoteJobId, now: datetime) -> Look:
        """Read what came back. A snapshot whose id is not `remote_job_id` is never `Seen`. `now` reads a `Retry-After` date."""


class CreatePort(Protocol):
    """The half that spends money: only `workers/dispatch` is handed it."""

    def create(self, specification_text: bytes) -> Request:
        """The POST. Its body is the hashed text, byte for byte, and nothing of ours: no operation id, tenant or key."""

    def reply(self, exchange: Exchange, *, dispatch_id: DispatchId, now: datetime) -> Reply:
        """How the POST ended, by the table of `core.classify`; a reply that already says how the render ended carries a snapshot."""


class Adapter(CreatePort, LookPort, Protocol):
    """Both halves, as `app` composes them for one configured provider."""
