"""A small world, whole and hashable: one operation's rows as the store has them, two workers, a person, and what the service really did.

Only what decides is kept. Revisions and lease tokens are compared and never counted, so what somebody read is `fresh` or it is not, and a
lease token is still the lane's (`holds`) or it is not: worlds that differ in nothing but numbers are the same world.
"""

import enum
from functools import cache
from typing import NamedTuple, TypeVar

from coatcheck.core.actions import Action
from coatcheck.core.events import EventKind
from coatcheck.core.operation import Outcome, Phase, RenderState

Item = TypeVar("Item")


class At(enum.StrEnum):
    """Where a worker stands: nothing in hand; a message; a mark whose commit it did not see; a mark; a reply; a look."""

    IDLE = "idle"
    LOADED = "loaded"
    UNSURE = "unsure"
    MARKED = "marked"
    REPLIED = "replied"
    LOOKED = "looked"


class Row(NamedTuple):
    """The operation's row. A dispatch is named by its number, and so is the remote job that its POST created."""

    phase: Phase = Phase.PREPARED
    authorisation: int = 1
    dispatch: int | None = None
    is_withdrawn: bool = False
    render_state: RenderState = RenderState.NONE
    job: int | None = None


class Dispatch(NamedTuple):
    """A committed mark."""

    authorisation: int
    outcome: Outcome = Outcome.OPEN
    job: int | None = None


class Lane(NamedTuple):
    """Lane 0. A lease that ended is a message that is due, whoever still thinks that he holds it."""

    action: Action = Action.DISPATCH
    is_leased: bool = False
    is_parked: bool = False


class Worker(NamedTuple):
    """One worker, the message that it has in hand and the row as it read it."""

    at: At = At.IDLE
    holds: bool = False
    action: Action | None = None
    row: Row | None = None
    fresh: bool = False
    dispatch: int | None = None
    reply: EventKind | None = None
    written: bool = False
    look: RenderState | None = None


class Budget(NamedTuple):
    """What may still go wrong or be decided; it makes the world finite."""

    crashes: int
    lease_ends: int
    lost_answers: int
    decisions: int
    dispatches: int


class World(NamedTuple):
    """Everything. The tuples from `dispatches` on have one place for each mark that was ever tried: None, no row, for one that failed."""

    budget: Budget
    row: Row = Row()
    lane: Lane | None = Lane()
    workers: tuple[Worker, Worker] = (Worker(), Worker())
    person: tuple[Row, bool] | None = None
    dispatches: tuple[Dispatch | None, ...] = ()
    posts: tuple[int, ...] = ()
    created: tuple[bool, ...] = ()
    quiescent: tuple[bool, ...] = ()

    def worker(self, number: int, worker: Worker) -> "World":
        """The same world with another state of one worker."""
        first, second = self.workers
        return self._replace(workers=(worker, second) if number == 0 else (first, worker))

    def spent(self, name: str) -> "World":
        """The same world with one thing less that may happen."""
        return self._replace(budget=self.budget._replace(**{name: getattr(self.budget, name) - 1}))

    def ordered(self) -> "World":
        """The same world up to the workers' names."""
        first, second = self.workers
        return self if _rank(first) <= _rank(second) else self._replace(workers=(second, first))


@cache
def _rank(worker: Worker) -> str:
    return repr(worker)


def put(places: tuple[Item, ...], number: int, value: Item) -> tuple[Item, ...]:
    """`places` with another value at `number`."""
    return (*places[:number], value, *places[number + 1 :])
