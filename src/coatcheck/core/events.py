"""Everything that can happen to an operation, as values. What an event means in a phase is said in `machine`, nowhere else."""

import enum
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from coatcheck.core.frozen import frozen
from coatcheck.core.operation import CancelAnswer, DispatchId, RemoteJobId, RenderState


class EventKind(enum.StrEnum):
    """The columns of the table in `machine`."""

    MARK = "mark"
    ACCEPTED = "accepted"
    FAILED_WITH_ID = "failed_with_id"
    REJECTED = "rejected"
    THROTTLED = "throttled"
    NOT_SENT = "not_sent"
    DOUBTED = "doubted"
    LEASE_ENDED = "lease_ended"
    REPEATED = "repeated"
    SNAPSHOT = "snapshot"
    NOT_FOUND = "not_found"
    STALLED = "stalled"
    OUTPUT_STORED = "output_stored"
    OUTPUT_FAILED = "output_failed"
    SOURCE_EXPIRED = "source_expired"
    CANCEL = "cancel"
    DEADLINE_PASSED = "deadline_passed"
    ADOPT = "adopt"
    PROVE_ABSENT = "prove_absent"
    REDISPATCH = "redispatch"
    REQUEST_REDISPATCH = "request_redispatch"
    WRITE_OFF = "write_off"
    CANCEL_ANSWERED = "cancel_answered"
    REOBSERVE = "reobserve"
    REDELIVER = "redeliver"
    RESUME = "resume"
    NOTE = "note"


# -- the one billable POST ---------------------------------------------------------------------------------------------


@frozen
class Mark:
    """The sentence "may be sent from now on" is to be committed under the present authorisation."""

    kind: ClassVar[EventKind] = EventKind.MARK
    dispatch_id: DispatchId
    account: str


@frozen
class Accepted:
    """A 2xx reply named a usable `job_id`. `snapshot` is there when the reply already says how the render stands."""

    kind: ClassVar[EventKind] = EventKind.ACCEPTED
    dispatch_id: DispatchId
    remote_job_id: RemoteJobId
    snapshot: "Snapshot | None" = None
    observe_for_s: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedWithId:
    """A reply that is not a success carried a usable `error.job_id`: saved and observed for its accounting."""

    kind: ClassVar[EventKind] = EventKind.FAILED_WITH_ID
    dispatch_id: DispatchId
    remote_job_id: RemoteJobId
    observe_for_s: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The service refused and created nothing."""

    kind: ClassVar[EventKind] = EventKind.REJECTED
    dispatch_id: DispatchId
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """Not created, come back later. `retry_after_s` is clamped already, None when the service named no delay; `delay_s` is our answer."""

    kind: ClassVar[EventKind] = EventKind.THROTTLED
    dispatch_id: DispatchId
    retry_after_s: float | None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """Proven: no byte of the request was handed to the kernel."""

    kind: ClassVar[EventKind] = EventKind.NOT_SENT
    dispatch_id: DispatchId
    cause: str
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted:
    """The request may have left and no usable reply came back."""

    kind: ClassVar[EventKind] = EventKind.DOUBTED
    dispatch_id: DispatchId
    cause: str
    looked_up: bool = False
    """Whether the service repeats our reference, so that it is asked before a person is."""
    candidate: RemoteJobId | None = None
    """An id that the unusable reply showed: a hint for a person, never acceptance."""


Reply = Accepted | FailedWithId | Rejected | Throttled | NotSent | Doubted
"""How the one POST ended: what an adapter makes of an exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """The lease of a dispatch ended while its phase was `dispatching` (S3)."""

    kind: ClassVar[EventKind] = EventKind.LEASE_ENDED
    cause: str = "lease_ended"
    looked_up: bool = False
    """Whether the service repeats our reference, as far as whoever found the lease ended knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A dispatch message came again though the remote job is known; `actor` is the worker that found it so."""

    kind: ClassVar[EventKind] = EventKind.REPEATED
    actor: str


# -- looks -------------------------------------------------------------------------------------------------------------


@frozen
class Output:
    """One output as the service names it. The URL may be signed: never shown."""

    index: int
    url: str = field(repr=False)
    content_type: str | None = None
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credits:
    """The service's own accounting of one remote job."""

    charged: Decimal
    refunded: Decimal = Decimal(0)
    unit: str | None = None


@frozen
class Waited:
    """Why the lane has been waiting, since when (the database's clock) and how often in a row."""

    reason: str | None = None
    since_at: datetime | None = None
    count: int = 0


@frozen
class Snapshot:
    """What a look brought back, its id already checked. `render_state` None: a word never seen before, kept and not final."""

    kind: ClassVar[EventKind] = EventKind.SNAPSHOT
    remote_job_id: RemoteJobId
    remote_status: str
    render_state: RenderState | None
    outputs: tuple[Output, ...] = ()
    unusable_count: int = 0
    """Outputs that the service listed and that nothing could be fetched from."""
    error_code: str | None = None
    credits: Credits | None = None
    created_at: datetime | None = None
    """When the job came to exist, by the service's clock, where it says."""
    is_creation_unreadable: bool = False
    """Whether the service says when, in a form that cannot be read as one instant."""
    reference: str | None = None
    """What the service repeats of ours, where it does."""
    waited: Waited = field(default_factory=Waited)
    stored_urls: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    """On a final operation: index and source of each output that is not delivered, to tell fresh URLs from known ones."""
    delay_s: float = 0.0
    """Until the next look, should there be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFound:
    """The service says that it does not know the job (404)."""

    kind: ClassVar[EventKind] = EventKind.NOT_FOUND
    grace_s: float
    waited: Waited = field(default_factory=Waited)
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """The observation deadline passed without a final state."""

    kind: ClassVar[EventKind] = EventKind.STALLED


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAnswered:
    """The service was told by `actor`, a worker, that the job is not wanted any more, and answered `status`. What became of it, looks tell."""

    kind: ClassVar[EventKind] = EventKind.CANCEL_ANSWERED
    actor: str
    answer: CancelAnswer
    status: int


# -- delivery ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStored:
    """An output lies whole and verified in the sink."""

    kind: ClassVar[EventKind] = EventKind.OUTPUT_STORED
    index: int
    uri: str
    sha256: str
    bytes: int
    sniffed_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFailed:
    """The tries of one delivery are spent; it is parked until `redeliver`."""

    kind: ClassVar[EventKind] = EventKind.OUTPUT_FAILED
    index: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceExpired:
    """The output's URL no longer answers; a look may bring a fresh one. `delay_s` until the next try of the delivery."""

    kind: ClassVar[EventKind] = EventKind.SOURCE_EXPIRED
    index: int
    delay_s: float


# -- people ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What every decision of a person carries."""

    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Decided):
    """Do not send it, if it is not too late."""

    kind: ClassVar[EventKind] = EventKind.CANCEL


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed:
    """`dispatch_by_at` passed before the mark."""

    kind: ClassVar[EventKind] = EventKind.DEADLINE_PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(Decided):
    """This remote job is the one that the lost reply named; checked by GET."""

    kind: ClassVar[EventKind] = EventKind.ADOPT
    remote_job_id: RemoteJobId
    observe_for_s: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveAbsent(Decided):
    """The service has no such job. Refused before `quiescent_at`: a paused worker could still send."""

    kind: ClassVar[EventKind] = EventKind.PROVE_ABSENT
    quiescent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Redispatch(Decided):
    """Spend again under a new authorisation. Costs money. `quiescent_at` is None when no dispatch is in doubt."""

    kind: ClassVar[EventKind] = EventKind.REDISPATCH
    quiescent_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRedispatch(Decided):
    """Ask for a redispatch where a second person has to agree: recorded, and carried out by somebody else's `Redispatch`."""

    kind: ClassVar[EventKind] = EventKind.REQUEST_REDISPATCH
    quiescent_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOff(Decided):
    """Give up on the remote job; the held amount counts as spent, or with `released` as not spent.

    `stalled` says whether its lane is parked as stalled. Released it is refused before `quiescent_at`: a job could still come to be.
    """

    kind: ClassVar[EventKind] = EventKind.WRITE_OFF
    stalled: bool = False
    released: bool = False
    quiescent_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reobserve(Decided):
    """Look again (free)."""

    kind: ClassVar[EventKind] = EventKind.REOBSERVE
    observe_for_s: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redeliver(Decided):
    """Try deliveries again that nobody tries any more (free). `indexes` are their outputs."""

    kind: ClassVar[EventKind] = EventKind.REDELIVER
    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Decided):
    """Let the message of a lane that was set aside be taken again (free). `park_reason` is why it was."""

    kind: ClassVar[EventKind] = EventKind.RESUME
    lane: int
    park_reason: str
    observe_for_s: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Decided):
    """Keep with the operation what a person found out, as `reason` says it. Nothing else changes, whatever the phase."""

    kind: ClassVar[EventKind] = EventKind.NOTE


Event = (
    Mark
    | Reply
    | LeaseEnded
    | Repeated
    | Snapshot
    | NotFound
    | Stalled
    | CancelAnswered
    | OutputStored
    | OutputFailed
    | SourceExpired
    | Cancel
    | DeadlinePassed
    | Adopt
    | ProveAbsent
    | Redispatch
    | RequestRedispatch
    | WriteOff
    | Reobserve
    | Redeliver
    | Resume
    | Note
)
