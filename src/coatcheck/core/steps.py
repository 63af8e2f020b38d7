"""What `machine.advance` decides: one value per kind of guarded write. The store applies a step or reports it stale; it never adapts one."""

import enum
from dataclasses import dataclass, field

from coatcheck.core.actions import LaneChange
from coatcheck.core.events import Credits, Output
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import CancelAnswer, DispatchId, OperationId, Outcome, Phase, RemoteJobId, RenderState


class Boundary(enum.StrEnum):
    """On which side a protocol fault lies."""

    OURS = "ours"
    NETWORK = "network"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A protocol fault worth a person's eye; repeated ones are counted."""

    kind: str
    boundary: Boundary
    detail: str


@frozen
class MarkStep:
    """Commit "may be sent from now on". Guard: revision, prepared, not withdrawn, account not paused, allowance."""

    operation_id: OperationId
    revision: int
    dispatch_id: DispatchId
    account: str


@frozen
class ConcludeStep:
    """The end of a POST. The evidence is written always; the conclusion only where dispatch and phase still allow it.

    `phase` None: evidence only. `withdrawn` is what the decider saw: a return to prepared and a cancellation exclude each other.
    `candidate_id` is an id that an unusable reply showed: for a person to look at, never acceptance.
    """

    operation_id: OperationId
    dispatch_id: DispatchId
    event: str
    outcome: Outcome
    phase: Phase | None
    withdrawn: bool
    cause: str | None = None
    remote_job_id: RemoteJobId | None = None
    candidate_id: RemoteJobId | None = None
    observe_for_s: float | None = None
    lanes: tuple[LaneChange, ...] = ()


@frozen
class SnapshotStep:
    """What a look changed. Guard: revision and remote job id. `settles`: the render is final, so the money is settled, too."""

    operation_id: OperationId
    revision: int
    remote_job_id: RemoteJobId
    event: str
    remote_status: str
    render_state: RenderState
    settles: bool = False
    outputs: tuple[Output, ...] = ()
    error_code: str | None = None
    credits: Credits | None = None
    lanes: tuple[LaneChange, ...] = ()
    incident: Incident | None = None


class Delivery(enum.StrEnum):
    """How one try of a delivery ended."""

    STORED = "stored"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverStep:
    """The end of a delivery. Guard: this output is not delivered yet. Rendering is never touched."""

    operation_id: OperationId
    event: str
    index: int
    result: Delivery
    uri: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    sniffed_type: str | None = None
    cause: str | None = None
    lanes: tuple[LaneChange, ...] = ()


class Settlement(enum.StrEnum):
    """What a decision makes of the money that a dispatch holds: nothing was bought, or what is held counts as spent."""

    FREE = "free"
    SPENT = "spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideStep:
    """A sweep's or a person's decision. Guard: revision. It changes a dispatch only where it applies itself.

    `authorises`: permission for one more POST. `requests_cancel` is recorded while the POST cannot be stopped; `clears_withdrawal` undoes
    it and the deadline, which a person's new authorisation overrides. `cancel_answer` is what the service said to it. `settles` the present
    dispatch, unless it is settled.
    """

    operation_id: OperationId
    revision: int
    event: str
    phase: Phase
    render_state: RenderState
    actor: str
    reason: str | None = None
    outcome: Outcome | None = None
    settles: Settlement | None = None
    authorises: bool = False
    requests_cancel: bool = False
    cancel_answer: CancelAnswer | None = None
    clears_withdrawal: bool = False
    remote_job_id: RemoteJobId | None = None
    observe_for_s: float | None = None
    redelivers: tuple[int, ...] = ()
    lanes: tuple[LaneChange, ...] = field(default=())


Step = MarkStep | ConcludeStep | SnapshotStep | DeliverStep | DecideStep


class Refused(enum.StrEnum):
    """Why an event changes nothing."""

    NOT_IN_TABLE = "not_in_table"
    UNCHANGED = "unchanged"
    WITHDRAWN = "withdrawn"
    WRONG_ID = "wrong_id"
    REGRESSED = "regressed"
    NOT_QUIESCENT = "not_quiescent"
    NOT_CANCELLABLE = "not_cancellable"
    FINAL = "final"
    STILL_LOOKING = "still_looking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The event does not apply to the operation as it stands; `detail` says what would be needed."""

    code: Refused
    detail: str
