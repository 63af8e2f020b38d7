"""What a person sees before and after deciding, with the names of the outer contract. Amounts are decimals in the unit beside them."""

import enum
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal

from coatcheck.app.story.telling import Chapter
from coatcheck.app.views import Operation
from coatcheck.core.operation import Phase, RenderState

Json = dict[str, object]


class Choice(enum.StrEnum):
    """The decisions there are, by the words of their commands."""

    ADOPT = "adopt"
    PROVE_ABSENT = "prove-absent"
    REDISPATCH = "redispatch"
    WRITE_OFF = "write-off"


REOBSERVE = "reobserve"
"""No decision: `coatcheck operations reobserve`, free, where a remote job is missing or stalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One operation that waits for a decision, and the dispatch that it is about.

    `held` is the money at risk, None where it is not known: no dispatch is, or no estimate was given. `age_s` counts from the mark. `decisions`
    are those possible now; `reobserve` among them is the free look again at a job that is missing or stalled.
    """

    operation_id: str
    tenant_id: str
    operation_key: str
    provider: str
    account: str | None
    phase: Phase
    render_state: RenderState
    revision: int
    dispatch_id: str | None
    number: int | None
    authorisation: int | None
    worker: str | None
    begun_at: datetime | None
    quiescent_at: datetime | None
    is_quiescent: bool
    stage: str | None
    cause: str | None
    http_status: int | None
    candidate_id: str | None
    held: Decimal | None
    unit: str
    age_s: float
    decisions: tuple[str, ...]

    def as_json(self) -> Json:
        """The fields by name."""
        return _fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A remote job that may be the one in doubt: shown, never acted on. Found in a cut `reply`, among `orphan`s, by `reference` or in a `list`.

    `created_at` is by the service's clock; `taken_by` the operation that has it already. Of an orphan, `spends` is what adopting it counts as
    spent: the present dispatch's money, where an earlier one made it. `resolved_by` and `resolution` tell who dealt with it: it is adopted no more.
    """

    remote_job_id: str
    source: str
    remote_status: str | None = None
    created_at: datetime | None = None
    reference: str | None = None
    taken_by: str | None = None
    spends: Decimal | None = None
    unit: str | None = None
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    resolution: str | None = None

    def as_json(self) -> Json:
        """The fields by name."""
        return _fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """A decision that the operation's phase allows, from `possible_at` on (None: at once), and its command."""

    decision: Choice
    possible_at: datetime | None
    command: str

    def as_json(self) -> Json:
        """The fields by name."""
        return _fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that helps to decide about one operation. `service` says what the service was asked, or why it was not."""

    doubt: Doubt
    story: tuple[Chapter, ...]
    candidates: tuple[Candidate, ...]
    service: str
    possible: tuple[Possible, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a redispatch costs: `spent` of the former dispatch counts as spent, and another POST costs about `estimate` (None: not known)."""

    operation_id: str
    spent: Decimal
    estimate: Decimal | None
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided, and the operation as the decision left it.

    `is_requested`: recorded only, another person has to carry it out. `spent` and `released` are what became of what the former dispatch
    held; `authorises`: one more POST, at about `estimate`. `cleared` names what no longer counts: `cancel`, `deadline`. `overlaps` are
    other tenants' operations whose dispatches were open at the same time. `next` says what follows.
    """

    operation: Operation
    event: str
    actor: str
    reason: str
    is_requested: bool = False
    spent: Decimal = Decimal(0)
    released: Decimal = Decimal(0)
    unit: str
    authorises: bool = False
    estimate: Decimal | None = None
    cleared: tuple[str, ...] = ()
    overlaps: tuple[str, ...] = ()
    next: str

    @property
    def result(self) -> str:
        """`requested` or `done`."""
        return "requested" if self.is_requested else "done"

    def as_json(self) -> Json:
        """The operation's id, phase, revision and remote job id with the rest by name."""
        rest = {name: value for name, value in _fields(self).items() if name not in ("operation", "is_requested")}
        found = self.operation
        return {
            "operation_id": found.operation_id,
            "result": self.result,
            "phase": found.phase,
            "revision": found.revision,
            "remote_job_id": found.remote_job_id,
            **rest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """An orphan that somebody dealt with, and the operation's revision which says so. `charged` is the corrected charge, where one was given."""

    account: str
    remote_job_id: str
    operation_id: str
    phase: Phase | None
    revision: int | None
    charged: Decimal | None
    resolved_at: datetime
    resolved_by: str
    resolution: str

    def as_json(self) -> Json:
        """The fields by name."""
        return _fields(self)


def _fields(value: "Doubt | Candidate | Possible | Decision | Resolution") -> Json:
    return {each.name: getattr(value, each.name) for each in fields(value)}
