"""What follows from a step: the instructions written into the operation's lanes in the same transaction.

Lane 0 is the operation's course (dispatch, observe, reconcile); lane i+1 delivers output i.
"""

import enum
from dataclasses import dataclass

from coatcheck.core.frozen import frozen

COURSE = 0
"""The lane of the operation's course."""


class Action(enum.StrEnum):
    """What a message asks a worker to do."""

    DISPATCH = "dispatch"
    OBSERVE = "observe"
    RECONCILE = "reconcile"
    DELIVER = "deliver"


class WaitReason(enum.StrEnum):
    """Why a lane is not due yet. A run of the same reason counts up and keeps its beginning."""

    THROTTLED = "throttled"
    NOT_SENT = "not_sent"
    PAUSE = "pause"
    ALLOWANCE = "allowance"
    CAP = "cap"
    RATE = "rate"
    ACTIVE = "active"
    TRANSIENT = "transient"
    DENIED = "denied"
    NONSENSE = "nonsense"
    NOT_FOUND = "not_found"
    NO_OUTPUT = "no_output"
    ACCOUNTING = "accounting"
    SOURCE_EXPIRED = "source_expired"
    DELIVERY_FAILED = "delivery_failed"
    LOOKUP = "lookup"


class ParkReason(enum.StrEnum):
    """Why a lane waits for a person."""

    UNCERTAIN = "uncertain"
    MISSING = "missing"
    STALLED = "stalled"
    DELIVERY_FAILED = "delivery_failed"
    LEASE_COUNT = "lease_count"
    SPECIFICATION = "specification"


def delivery_lane(output_index: int) -> int:
    """The lane that delivers an output."""
    return output_index + 1


@frozen
class Aim:
    """Point a lane at an action, due after `delay_s` seconds."""

    lane: int
    action: Action
    delay_s: float = 0.0
    wait_reason: WaitReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Set a lane aside for a person."""

    lane: int
    action: Action
    reason: ParkReason


@frozen
class Drop:
    """The lane has nothing left to do."""

    lane: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAll:
    """The operation is closed before a POST or written off: no lane has anything left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Make the course look at the remote job now, unless a look is being made right now. `resumes`: also where it was set aside."""

    resumes: bool = False


LaneChange = Aim | Park | Drop | DropAll | Look
