"""A small world, whole and hashable: one operation's rows as the store has them, its workers, a person, and what the service really did.

Only what decides is kept. Revisions and lease tokens are compared and never counted, so what somebody read is `fresh` or it is not, and a
lease token is still the lane's (`holds`) or it is not: worlds that differ in nothing but numbers are the same world. What may still go
wrong (`Bounds`) is no part of it: the explorer counts that beside.
"""

import enum
from functools import cache
from typing import NamedTuple

from coatcheck.core.actions import Action, ParkReason
from coatcheck.core.events import EventKind
from coatcheck.core.operation import Outcome, Phase, RenderState

RIVAL = -1
"""The number of a remote job that another operation owns; all others are named by the dispatch whose POST created them."""


class At(enum.StrEnum):
    """Where a worker stands: nothing in hand; a message; the row, too; a mark whose commit it did not see; a mark; a reply; a look."""

    IDLE = "idle"
    CLAIMED = "claimed"
    LOADED = "loaded"
    UNSURE = "unsure"
    MARKED = "marked"
    REPLIED = "replied"
    LOOKED = "looked"


class Deadline(enum.StrEnum):
    """`dispatch_by_at`: there is none, it lies ahead, it passed. Time passes it without a revision."""

    NONE = "none"
    AHEAD = "ahead"
    PASSED = "passed"


class Money(enum.StrEnum):
    """What a dispatch's row says of its amount: held, settled at nothing, or charged."""

    HELD = "held"
    FREE = "free"
    SPENT = "spent"


class Owner(enum.StrEnum):
    """What `remote_jobs` says of a job: nothing, this operation's, an orphan of this operation, another operation's."""

    NOBODY = "nobody"
    OURS = "ours"
    ORPHAN = "orphan"
    RIVALS = "rivals"


class Row(NamedTuple):
    """The operation's row. A dispatch is named by its number, and so is the remote job that its POST created."""

    phase: Phase = Phase.PREPARED
    authorisation: int = 1
    dispatch: int | None = None
    is_cancel_requested: bool = False
    deadline: Deadline = Deadline.NONE
    render_state: RenderState = RenderState.NONE
    job: int | None = None

    @property
    def is_withdrawn(self) -> bool:
        """Nothing is sent any more under the present authorisation."""
        return self.is_cancel_requested or self.deadline is Deadline.PASSED


class Dispatch(NamedTuple):
    """The row of a committed mark."""

    outcome: Outcome = Outcome.OPEN
    job: int | None = None
    money: Money = Money.HELD
    is_displaced: bool = False


class Attempt(NamedTuple):
    """One mark that was tried: its row, None where there is none, and the truth about its POST. `is_lost`: a failover took the row."""

    authorisation: int
    row: Dispatch | None = None
    posts: int = 0
    is_created: bool = False
    is_quiet: bool = False
    is_lost: bool = False
    owner: Owner = Owner.NOBODY
    """Of the job that it created."""


class Lane(NamedTuple):
    """Lane 0. A lease that ended is a message that is due, whoever still thinks that he holds it; `bad_leases` counts those in a row."""

    action: Action = Action.DISPATCH
    is_leased: bool = False
    parked: ParkReason | None = None
    bad_leases: int = 0


class Worker(NamedTuple):
    """One worker, the message that it has in hand and the row as it read it."""

    at: At = At.IDLE
    holds: bool = False
    action: Action | None = None
    row: Row | None = None
    fresh: bool = False
    is_last_lease: bool = False
    dispatch: int | None = None
    reply: EventKind | None = None
    job: int | None = None
    """Which job the reply or the look names."""
    written: bool = False
    spooled: bool = False
    look: RenderState | None = None


IDLE = Worker()


class Line(NamedTuple):
    """The end of a POST on a host's disk: whoever wrote it is dead or busy with other things."""

    dispatch: int
    reply: EventKind
    job: int | None


class Reading(NamedTuple):
    """What a person read: the row, why its lane is parked, and whether all that is still so."""

    row: Row
    parked: ParkReason | None
    fresh: bool = True


class Bounds(NamedTuple):
    """How often each thing may happen that makes the world finite, and how large it is.

    `strays`: the service or a person names a job that is not this operation's. `lease_limit` 0: no message is parked for its leases. `reads_apart`: others may act
    between a claim and the read that follows it.
    """

    crashes: int = 0
    lease_ends: int = 0
    lost_answers: int = 0
    spoolings: int = 0
    decisions: int = 0
    failovers: int = 0
    strays: int = 0
    workers: int = 2
    marks: int = 2
    lease_limit: int = 0
    has_deadline: bool = False
    reads_apart: bool = False


COSTS = ("", "crashes", "lease_ends", "lost_answers", "spoolings", "decisions", "failovers", "strays")
"""What a move may take of the bounds; most take nothing."""


class World(NamedTuple):
    """Everything there is at one moment. `held` and `charged` are the tenant's allowance, counted as the store counts it: by differences.

    What happens a million times over is written as a call of the constructor: `_replace` takes three times as long.
    """

    row: Row
    lane: Lane | None
    workers: tuple[Worker, ...]
    person: Reading | None = None
    attempts: tuple[Attempt, ...] = ()
    spool: tuple[Line, ...] = ()
    held: int = 0
    charged: int = 0

    def worker(self, number: int, worker: Worker) -> "World":
        """The same world with another state of one worker."""
        workers = (*self.workers[:number], worker, *self.workers[number + 1 :])
        return World(self.row, self.lane, workers, self.person, self.attempts, self.spool, self.held, self.charged)

    def attempt(self, number: int, attempt: Attempt) -> "World":
        """The same world with another state of one mark that was tried."""
        attempts = (*self.attempts[:number], attempt, *self.attempts[number + 1 :])
        return World(self.row, self.lane, self.workers, self.person, attempts, self.spool, self.held, self.charged)

    def ordered(self) -> "World":
        """The same world up to the workers' names."""
        workers = _ordered(self.workers)
        if workers is self.workers:
            return self
        return World(self.row, self.lane, workers, self.person, self.attempts, self.spool, self.held, self.charged)


def start(bounds: Bounds) -> World:
    """A prepared operation, its message due, and workers with nothing to do."""
    deadline = Deadline.AHEAD if bounds.has_deadline else Deadline.NONE
    return World(row=Row(deadline=deadline), lane=Lane(), workers=(IDLE,) * bounds.workers)


def order(workers: tuple[Worker, ...]) -> list[int]:
    """Which worker comes first in a world's own order, which next."""
    return sorted(range(len(workers)), key=lambda number: repr(workers[number]))


@cache
def _ordered(workers: tuple[Worker, ...]) -> tuple[Worker, ...]:
    numbers = order(workers)
    return workers if numbers == sorted(numbers) else tuple(workers[number] for number in numbers)
