"""What the store should hold, said once more and by another hand: plain Python over plain records, with no word of the machine or the SQL.

Revisions, phases, dispatches, money and lanes follow `docs/guarantees.md`. Nothing here is concurrent: one thing happens after the other, and
whoever acts on what he read earlier hands in a `Seen`, a copy of that moment.
"""

import copy
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

CLOSED = ("rejected", "cancelled", "abandoned")
KNOWN = ("accepted", "submission_failed")
FINAL = ("succeeded", "failed")
NOTHING_CREATED = ("rejected", "throttled", "not_sent", "proven_absent")
WITH_ID = ("accepted", "submission_failed")


@dataclass(kw_only=True)
class Dispatch:
    """One mark: what came of its POST, and its money. `charged` None: still held."""

    number: int
    authorisation: int
    held: Decimal
    quiet_at: float
    outcome: str = "open"
    job: str | None = None
    charged: Decimal | None = None
    is_displaced: bool = False

    @property
    def spends(self) -> bool:
        """Whether it takes up its authorisation, as far as is known."""
        return self.outcome not in ("not_sent", "throttled", "proven_absent") and not self.is_displaced

    @property
    def proof(self) -> int:
        """How much is known: nothing, doubt, that nothing was created, an id."""
        if self.outcome in WITH_ID:
            return 3
        return 2 if self.outcome in NOTHING_CREATED else ("open", "uncertain").index(self.outcome)


@dataclass(kw_only=True)
class Lane:
    """One message. `token` is one more for whoever holds it next; `due_at` None: later, nobody says when."""

    action: str
    due_at: float | None
    token: int
    holder: str | None = None
    parked: str | None = None
    bad_leases: int = 0


@dataclass(kw_only=True)
class Record:
    """One operation. Outputs are pending, delivered or failed."""

    tenant: str
    key: str
    text: str
    estimate: Decimal
    dispatch_by: float | None
    phase: str = "prepared"
    revision: int = 0
    authorisation: int = 1
    dispatch: UUID | None = None
    is_cancel_requested: bool = False
    render: str = "none"
    word: str | None = None
    job: str | None = None
    outputs: list[str] = field(default_factory=list)
    dispatches: dict[UUID, Dispatch] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)

    def is_withdrawn(self, now: float) -> bool:
        """Nothing is sent any more under the present authorisation."""
        return self.is_cancel_requested or (self.dispatch_by is not None and self.dispatch_by <= now)

    @property
    def delivery(self) -> str:
        """The third axis, from the outputs."""
        if not self.outputs:
            return "not_started"
        if "pending" in self.outputs:
            return "pending"
        return "failed" if "failed" in self.outputs else "delivered"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A record as it was read at `at`, and how things stood with what it names."""

    record: Record
    at: float

    @property
    def is_withdrawn(self) -> bool:
        return self.record.is_withdrawn(self.at)

    def is_quiet(self, now: Record) -> bool:
        """Whether nothing of its dispatch could still be under way when it was read, by what is known of that dispatch now."""
        mine = self.record.dispatch
        return mine is None or now.dispatches[mine].quiet_at <= self.at


@dataclass(kw_only=True)
class Books:
    """Everything: the operations by their ids, whose each job is, and what a tenant may spend."""

    now: float = 0.0
    is_paused: bool = False
    records: dict[UUID, Record] = field(default_factory=dict)
    jobs: dict[str, tuple[UUID, UUID | None, str]] = field(default_factory=dict)
    """Per job its operation, the dispatch that it belongs to, and `owner` or `orphan`."""
    limits: dict[str, Decimal | None] = field(default_factory=dict)
    tokens: int = 0

    def seen(self, operation: UUID) -> Seen:
        """Read an operation."""
        return Seen(record=copy.deepcopy(self.records[operation]), at=self.now)

    def money(self, tenant: str) -> tuple[Decimal, Decimal]:
        """S11: what is held and what is charged are sums over dispatches, and nothing else."""
        mine = [
            each for record in self.records.values() if record.tenant == tenant for each in record.dispatches.values()
        ]
        held = sum((each.held for each in mine if each.charged is None), Decimal(0))
        return held, sum((each.charged for each in mine if each.charged is not None), Decimal(0))

    def enqueued(self, tenant: str, key: str, text: str) -> str:
        """What enqueueing answers: a key is one operation of its tenant for ever."""
        for record in self.records.values():
            if (record.tenant, record.key) == (tenant, key):
                return "existing" if record.text == text else "key_reused"
        return "created"

    def create(self, operation: UUID, record: Record) -> None:
        """A new operation, and the message that it is to be dispatched."""
        self.records[operation] = record
        self.aim(record, 0, "dispatch")

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def aim(
        self, record: Record, lane: int, action: str, *, due_in: float | None = 0.0, parked: str | None = None
    ) -> None:
        """Point a lane at an action, whoever holds it."""
        self.tokens += 1
        due_at = None if due_in is None else self.now + due_in
        record.lanes[lane] = Lane(action=action, due_at=due_at, token=self.tokens, parked=parked)

    def look(self, record: Record, *, resumes: bool) -> None:
        """Make a look due that nobody makes right now."""
        lane = record.lanes.get(0)
        if lane and lane.action == "observe" and lane.holder is None and (lane.parked is None or resumes):
            self.aim(record, 0, "observe")

    def take(self, lane: Lane, worker: str, lease: float) -> int:
        """Lease a message; the token that goes with it."""
        self.tokens += 1
        lane.token, lane.holder, lane.due_at = self.tokens, worker, self.now + lease
        lane.bad_leases += 1
        return lane.token

    def held_by(self, operation: UUID, lane: int, token: int) -> Lane | None:
        """The lane, if that token is still the lane's."""
        found = self.records[operation].lanes.get(lane)
        return found if found is not None and found.token == token and found.holder is not None else None

    # -- whose job -----------------------------------------------------------------------------------------------------

    def claims_job(self, job: str, operation: UUID, dispatch: UUID | None, *, concludes: bool) -> str:
        """S5: won, or kept as an orphan; `owned` where another operation has it."""
        if job not in self.jobs:
            self.jobs[job] = (operation, dispatch, "owner" if concludes else "orphan")
            return "won"
        owner, _, role = self.jobs[job]
        if owner != operation:
            return "owned"
        if concludes and role == "orphan":
            return "promoted"
        return "known"
