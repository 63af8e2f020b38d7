"""The port to a remote service, callback by callback. An adapter is pure: it never does I/O, never asks for the time, never raises on data.

So an adapter is tested from recorded replies, and no client library's hidden resend can slip between the mark and the one POST. The port
comes in parts, so that who observes or reconciles cannot even name the call that spends money (S9).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from coatcheck.core.events import Reply, Snapshot
from coatcheck.core.evidence import Exchange, Request
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import CancelAnswer, DispatchId, RemoteJobId


@frozen
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A job as the service's list names it: whose it is, nobody has proven. `created_at` by the service's clock, `reference` what it repeats of ours."""

    remote_job_id: RemoteJobId
    remote_status: str | None = None
    created_at: datetime | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Jobs of the account, as the service orders them, at most `listing.LIMIT`. `is_cut`: there are more than these.

    `unusable_count`: entries that name no id which could be asked for.
    """

    candidates: tuple[Candidate, ...] = ()
    is_cut: bool = False
    unusable_count: int = 0


Listed = Listing | Transient | Denied | Nonsense
"""What one GET of the service's list brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Echoed:
    """Exactly one job repeats our reference: it is the one that this dispatch created, whatever became of the reply."""

    candidate: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Unechoed:
    """No job repeats it, as far as the service shows now. That is no proof of absence: the job may still come to exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """Several jobs repeat it: an incident of theirs, decided by a person."""

    count: int


Found = Echoed | Unechoed | Ambiguous | Transient | Denied | Nonsense
"""What one GET for our reference brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAnswered:
    """The service took or refused the wish to cancel a job. What became of the job, a look tells."""

    answer: CancelAnswer
    status: int


Cancelling = CancelAnswered | Transient
"""What one wish to cancel brought back."""


class Getter(Protocol):
    """Carries out GETs, and GETs only: what observing is handed instead of a client."""

    async def get(self, request: Request, *, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` seconds in all. Remote faults are in the value, never raised."""


class Canceller(Protocol):
    """Carries out wishes to cancel, and nothing else: what it sends has no body, so it can order nothing."""

    async def cancel(self, request: Request, *, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` seconds in all. Remote faults are in the value, never raised."""


class LookPort(Protocol):
    """The half that is free and repeatable: all that observing and reconciling ever see of an adapter."""

    def look(self, remote_job_id: RemoteJobId, wait_s: float) -> Request:
        """The GET that asks for one job and lets the service hold the answer back for up to `wait_s` seconds.

        Whatever the id contains, it stays one segment of the path.
        """

    def seen(self, exchange: Exchange, *, remote_job_id: RemoteJobId, now: datetime) -> Look:
        """Read what came back. A snapshot whose id is not `remote_job_id` is never `Seen`. `now` reads a `Retry-After` date."""


class ListPort(Protocol):
    """The part that shows a person what was created when. Nothing acts on it by itself."""

    def listed(self, after: datetime, before: datetime) -> Request | None:
        """The GET for the account's jobs that were created between two instants; None where the service has no list."""

    def candidates(self, exchange: Exchange, *, now: datetime) -> Listed:
        """Read what came back. `now` reads a `Retry-After` date."""


class FindPort(Protocol):
    """The part that only a service has which repeats the reference of a POST, our `dispatch_id`."""

    def find(self, dispatch_id: DispatchId) -> Request:
        """The GET that asks which job repeats the reference."""

    def found(self, exchange: Exchange, *, dispatch_id: DispatchId, now: datetime) -> Found:
        """Read what came back. `Echoed` only where the job itself repeats the reference, whatever the service was asked for."""


class CancelPort(Protocol):
    """The part that only a service has which can be told that a job is not wanted any more. Repeatable, and never billed."""

    def cancel(self, remote_job_id: RemoteJobId) -> Request | None:
        """The request that says so, without a body; None where the service has none."""

    def cancelled(self, exchange: Exchange, *, now: datetime) -> Cancelling:
        """Read what came back. Only a status that was received says anything."""


class CreatePort(Protocol):
    """The half that spends money: only `workers/dispatch` is handed it."""

    def create(self, specification_text: bytes, *, dispatch_id: DispatchId) -> Request:
        """The POST. Its body is the hashed text, byte for byte, and nothing of ours: no operation id, tenant or key.

        Only where the service repeats a reference, the dispatch id goes along beside the body.
        """

    def reply(self, exchange: Exchange, *, dispatch_id: DispatchId, now: datetime) -> Reply:
        """How the POST ended, by the table of `core.classify`; a reply that already says how the render ended carries a snapshot."""


class Adapter(CreatePort, LookPort, ListPort, CancelPort, Protocol):
    """What every service has, as `app` composes it for one configured provider."""
