"""The application's durable record, as a value: three axes that are never merged (phase, render_state, delivery_state)."""

import enum
from datetime import datetime
from decimal import Decimal
from typing import NewType, assert_never
from uuid import UUID

from coatcheck.core.frozen import frozen

OperationId = NewType("OperationId", UUID)
DispatchId = NewType("DispatchId", UUID)
TenantId = NewType("TenantId", str)
RemoteJobId = NewType("RemoteJobId", str)


class Phase(enum.StrEnum):
    """Local progress: what this application has done about the one billable POST."""

    PREPARED = "prepared"
    DISPATCHING = "dispatching"
    ACCEPTED = "accepted"
    SUBMISSION_FAILED = "submission_failed"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class RenderState(enum.StrEnum):
    """The service's progress, in our words; `remote_status` keeps theirs verbatim."""

    NONE = "none"
    QUEUED = "queued"
    RENDERING = "rendering"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    MODERATED = "moderated"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    MISSING = "missing"


FINAL_RENDER_STATES = frozenset(
    {
        RenderState.SUCCEEDED,
        RenderState.FAILED,
        RenderState.MODERATED,
        RenderState.CANCELLED,
        RenderState.EXPIRED,
    }
)
"""Nothing replaces one of these (S6)."""


class DeliveryState(enum.StrEnum):
    """The output's progress into the sink."""

    NOT_STARTED = "not_started"
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


ECHOED = "the service repeats the dispatch id"
"""The reason of an adoption that no person made."""


class Outcome(enum.StrEnum):
    """What the end of one dispatch proved. It only rises: open < uncertain < refused, throttled, not sent, absent < an id."""

    OPEN = "open"
    UNCERTAIN = "uncertain"
    REJECTED = "rejected"
    THROTTLED = "throttled"
    NOT_SENT = "not_sent"
    PROVEN_ABSENT = "proven_absent"
    SUBMISSION_FAILED = "submission_failed"
    ACCEPTED = "accepted"

    @property
    def rank(self) -> int:
        """How much it proves, as `coatcheck.outcome_rank` has it: an outcome is replaced only by one of a higher rank."""
        match self:
            case Outcome.OPEN:
                return 0
            case Outcome.UNCERTAIN:
                return 1
            case Outcome.REJECTED | Outcome.THROTTLED | Outcome.NOT_SENT | Outcome.PROVEN_ABSENT:
                return 2
            case Outcome.SUBMISSION_FAILED | Outcome.ACCEPTED:
                return 3
            case _:
                assert_never(self)


class CancelAnswer(enum.StrEnum):
    """What the service said to the wish to cancel a remote job. What becomes of the job, only looks tell."""

    TAKEN = "taken"
    REFUSED = "refused"


@frozen
class Operation:
    """One row of `operations` as it was read at `read_at` (the database's clock)."""

    operation_id: OperationId
    tenant_id: TenantId
    operation_key: str
    provider: str
    account: str | None
    specification_hash: str
    phase: Phase
    authorisation: int
    authorised_by: str
    dispatch_id: DispatchId | None
    dispatch_count: int
    render_state: RenderState
    remote_status: str | None
    delivery_state: DeliveryState
    output_count: int
    delivered_count: int
    failed_count: int
    remote_job_id: RemoteJobId | None
    revision: int
    estimate: Decimal | None
    unit: str
    priority: int
    not_before_at: datetime | None
    dispatch_by_at: datetime | None
    observe_by_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_answer: CancelAnswer | None = None
    accepted_at: datetime | None
    final_at: datetime | None
    created_at: datetime
    updated_at: datetime
    read_at: datetime

    @property
    def is_final(self) -> bool:
        """Whether the render reached a state that nothing replaces."""
        return self.render_state in FINAL_RENDER_STATES

    @property
    def owes_cancel(self) -> bool:
        """Whether the service is still to be told that the remote job is not wanted any more."""
        return self.cancel_requested_at is not None and self.cancel_answer is None and not self.is_final

    @property
    def is_overdue(self) -> bool:
        """Whether the instant after which no POST may begin has passed."""
        return self.dispatch_by_at is not None and self.dispatch_by_at <= self.read_at

    @property
    def is_withdrawn(self) -> bool:
        """Whether a return to `prepared` must end in `cancelled` instead."""
        return self.cancel_requested_at is not None or self.is_overdue
