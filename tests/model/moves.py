"""Everything that can happen next in a world: what workers and people do, and what time, chance and crashes do."""

from collections.abc import Iterator

from coatcheck.core.actions import ParkReason
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.operation import Outcome, Phase
from coatcheck.core.steps import DecideStep
from model import store
from model.move import Habits, Move, is_free, said
from model.table import About
from model.working import works
from model.world import IDLE, At, Bounds, Deadline, Owner, Reading, World

__all__ = ["Habits", "Move", "moves"]


def moves(world: World, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    """Every next world. Of workers that are in the same position, one moves for all."""
    former = None
    for number, worker in enumerate(world.workers):
        if worker == former:
            continue
        former = worker
        yield from works(world, number, worker, habits, bounds)
        if worker.at is not At.IDLE and bounds.crashes:
            yield Move((number, "dies when", worker.at), world.worker(number, IDLE), "crashes")
    yield from _time(world, bounds)
    if bounds.failovers:
        yield from _failover(world)
    yield from _person(world, habits, bounds)


def _time(world: World, bounds: Bounds) -> Iterator[Move]:
    """Leases end; a deadline passes; send windows and whatever was on its way pass, also of a mark that a failover took."""
    lane = world.lane
    if bounds.lease_ends and lane is not None and lane.is_leased:
        ended = lane._replace(is_leased=False, bad_leases=min(lane.bad_leases + 1, bounds.lease_limit))
        yield Move(("the lease ends",), world._replace(lane=ended), "lease_ends")
    if world.row.deadline is Deadline.AHEAD:
        late = world.row._replace(deadline=Deadline.PASSED)
        yield Move(("the deadline passes",), world._replace(row=late))
    for number, attempt in enumerate(world.attempts):
        if not attempt.is_quiet and (number == world.row.dispatch or attempt.is_lost):
            yield Move(("dispatch", number, "is quiescent"), world.attempt(number, attempt._replace(is_quiet=True)))


def _failover(world: World) -> Iterator[Move]:
    """The primary is lost, and a standby that was behind does not have its last write, a mark."""
    row = world.row
    if row.phase is not Phase.DISPATCHING or row.dispatch is None or row.is_cancel_requested:
        return
    marked = world.attempts[row.dispatch].row
    if marked is not None and marked.outcome is Outcome.OPEN:
        yield Move(("a failover loses dispatch", row.dispatch), store.failed_over(world), "failovers")


def _person(world: World, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    """A person reads, and decides later on what he read."""
    if world.person is not None:
        yield from _decides(world, world.person, habits)
    elif bounds.decisions:
        parked = world.lane.parked if world.lane is not None else None
        read = world._replace(person=Reading(world.row, parked))
        yield Move(("a person reads",), read, "decisions")
    if bounds.strays:
        for job, attempt in enumerate(world.attempts):
            if attempt.is_created and attempt.owner is Owner.NOBODY:
                taken = world.attempt(job, attempt._replace(owner=Owner.RIVALS))
                yield Move(("a person gives job", job, "to another operation"), taken, "strays")


def _decides(world: World, reading: Reading, habits: Habits) -> Iterator[Move]:
    """The decisions of one who looks at the service: nobody proves absent what is there."""
    row = reading.row
    is_quiet = row.dispatch is None or world.attempts[row.dispatch].is_quiet or not habits.waits_for_quiescence
    about = About(is_quiet=is_quiet, parked=reading.parked)
    asked = [(Kind.CANCEL, about), (Kind.WRITE_OFF, about), (Kind.REDISPATCH, about), (Kind.REOBSERVE, about)]
    if row.dispatch is not None and not world.attempts[row.dispatch].is_created:
        asked.append((Kind.PROVE_ABSENT, about))
    if reading.parked is ParkReason.LEASE_COUNT:
        asked.append((Kind.RESUME, about))
    asked += [(Kind.ADOPT, About(job=job)) for job in range(len(world.attempts)) if is_free(world, job)]
    for kind, details in asked:
        told = habits.table(row, kind, details)
        if isinstance(told.step, DecideStep):
            saved = store.decide(world._replace(person=None), habits.guards, told, fresh=reading.fresh)
            job = () if details.job is None else ("job", details.job)
            yield Move(("a person decides", kind, *job, said(saved)), saved.world, saved=saved)
