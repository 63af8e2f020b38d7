"""Everything that can happen next in a world: what workers do as the handlers do it, a person's decisions, and what time, chance and crashes do.

A worker's move ends where the process may be interrupted: between reading, marking, sending, saving and looking others may do anything.
"""

from collections.abc import Iterator
from typing import NamedTuple

from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.operation import FINAL_RENDER_STATES, Phase, RenderState
from coatcheck.core.steps import ConcludeStep, DecideStep, MarkStep, SnapshotStep
from model import store, table
from model.store import Guards, Saved
from model.table import Asked
from model.world import At, Lane, Worker, World, put

KNOWN = (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)
CLOSED = (Phase.REJECTED, Phase.CANCELLED, Phase.ABANDONED)


class Habits(NamedTuple):
    """How workers behave, one flag for each habit so that it can be broken."""

    table: Asked
    guards: Guards = Guards()
    posts_after_the_mark: bool = True
    posts_only_on_a_seen_commit: bool = True
    keeps_the_send_window: bool = True
    sends_once: bool = True
    waits_for_quiescence: bool = True
    asks_again_when_stale: bool = True


class Move(NamedTuple):
    """One thing that happened, and what its judge must know beside the worlds before and after: saves, POSTs, whose doing it was."""

    label: str
    world: World
    saved: Saved | None = None
    posted: int | None = None
    swept: bool = False
    ended: int | None = None
    """The dispatch whose reply was saved for good by a worker that lived on."""


def moves(world: World, habits: Habits) -> Iterator[Move]:
    """Every next world."""
    for number, worker in enumerate(world.workers):
        yield from _works(world, number, worker, habits)
        if worker.at != At.IDLE and world.budget.crashes:
            yield Move(f"worker {number} dies ({worker.at})", world.spent("crashes").worker(number, Worker()))
    yield from _time(world)
    yield from _person(world, habits)


def _works(world: World, number: int, worker: Worker, habits: Habits) -> Iterator[Move]:
    match worker.at:
        case At.IDLE:
            yield from _claim(world, number)
        case At.LOADED:
            yield from _handle(world, number, worker, habits)
        case At.UNSURE:
            yield from _after_unseen_commit(world, number, worker, habits)
        case At.MARKED:
            yield from _post(world, number, worker, habits)
        case At.REPLIED:
            yield from _conclude(world, number, worker, habits)
        case At.LOOKED:
            yield _save_look(world, number, worker, habits)


def _claim(world: World, number: int) -> Iterator[Move]:
    lane = world.lane
    if lane is None or lane.is_leased or lane.is_parked:
        return
    leased = store.claimed(world, lane._replace(is_leased=True))
    worker = Worker(at=At.LOADED, holds=True, action=lane.action, row=world.row, fresh=True)
    yield Move(f"worker {number} claims {lane.action} in {world.row.phase}", leased.worker(number, worker))


def _handle(world: World, number: int, worker: Worker, habits: Habits) -> Iterator[Move]:
    assert worker.row is not None
    phase = worker.row.phase
    if phase is Phase.DISPATCHING and worker.action in (Action.DISPATCH, Action.RECONCILE):
        yield _sweep(world, number, worker, habits)
    elif phase is Phase.PREPARED and worker.action is Action.DISPATCH:
        yield from _dispatch(world, number, worker, habits)
    elif phase is Phase.UNCERTAIN:
        yield _end(world, number, worker, "parks", world.lane and world.lane._replace(is_leased=False, is_parked=True))
    elif phase in CLOSED or worker.row.render_state in FINAL_RENDER_STATES:
        yield _end(world, number, worker, "acknowledges", None)
    elif phase in KNOWN and worker.action is Action.OBSERVE:
        for state in (RenderState.RENDERING, RenderState.SUCCEEDED):
            yield Move(f"worker {number} sees {state}", world.worker(number, worker._replace(at=At.LOOKED, look=state)))
    elif phase in KNOWN and worker.action is Action.DISPATCH:
        yield _decide(world, number, worker, ev.Reobserve(actor="worker", reason="redelivered"), habits)
    else:
        yield _end(world, number, worker, "releases", world.lane and world.lane._replace(is_leased=False))


def _sweep(world: World, number: int, worker: Worker, habits: Habits) -> Move:
    """A lease ended in dispatching: doubt, if this worker still holds the message."""
    assert worker.row is not None
    if not worker.holds:
        return Move(f"worker {number} lost its lease", world.worker(number, Worker()))
    return _decide(world, number, worker, ev.LeaseEnded(), habits)._replace(swept=True)


def _decide(world: World, number: int, worker: Worker, event: ev.Event, habits: Habits) -> Move:
    assert worker.row is not None
    step = habits.table(worker.row, event)
    idle = world.worker(number, Worker())
    if not isinstance(step, DecideStep):
        return Move(f"worker {number}: {event.kind} is refused", idle)
    saved = store.decide(idle, habits.guards, step, fresh=worker.fresh)
    return Move(f"worker {number} decides {event.kind}: {_said(saved)}", saved.world, saved)


def _dispatch(world: World, number: int, worker: Worker, habits: Habits) -> Iterator[Move]:
    """Mark. The answer to its commit may be lost, and then nobody knows whether there was a commit."""
    assert worker.row is not None
    if worker.row.is_withdrawn:
        yield _decide(world, number, worker, ev.DeadlinePassed(), habits)
        return
    if world.budget.dispatches <= len(world.dispatches):
        return
    dispatch = len(world.dispatches)
    step = habits.table(worker.row, ev.Mark(dispatch_id=table.dispatch_id(dispatch), account="genace"))
    assert isinstance(step, MarkStep)
    if not habits.posts_after_the_mark:
        unmarked = store.place(world, None)
        yield Move(f"worker {number} does not mark", unmarked.worker(number, _marked(worker, dispatch, world)))
    saved = store.mark(world, habits.guards, fresh=worker.fresh)
    if not saved.applied:
        yield _end(
            world,
            number,
            worker,
            "finds its mark stale and releases",
            world.lane and world.lane._replace(is_leased=False),
        )
        return
    label = f"worker {number} marks dispatch {dispatch}"
    yield Move(label, saved.world.worker(number, _marked(worker, dispatch, saved.world)), saved)
    if world.budget.lost_answers:
        unsure = Worker(at=At.UNSURE, action=worker.action, row=worker.row, dispatch=dispatch)
        yield Move(f"{label}, unseen", saved.world.spent("lost_answers").worker(number, unsure), saved)
        missed = store.place(world, None).spent("lost_answers")
        yield Move(f"{label}, unseen and not committed", missed.worker(number, unsure._replace(holds=worker.holds)))


def _marked(worker: Worker, dispatch: int, world: World) -> Worker:
    return Worker(at=At.MARKED, holds=True, action=worker.action, row=world.row, fresh=True, dispatch=dispatch)


def _after_unseen_commit(world: World, number: int, worker: Worker, habits: Habits) -> Iterator[Move]:
    """No POST: what is found there is recorded as not sent."""
    assert worker.dispatch is not None
    if not habits.posts_only_on_a_seen_commit:
        yield Move(f"worker {number} sends all the same", world.worker(number, _marked(worker, worker.dispatch, world)))
    if world.row.dispatch == worker.dispatch:
        replied = Worker(at=At.REPLIED, row=world.row, fresh=True, dispatch=worker.dispatch, reply=Kind.NOT_SENT)
        yield Move(f"worker {number} finds its mark", world.worker(number, replied))
    else:
        yield _end(world, number, worker, "finds no mark", world.lane and world.lane._replace(is_leased=False))


def _post(world: World, number: int, worker: Worker, habits: Habits) -> Iterator[Move]:
    """The one POST: past the send window no byte leaves; before it, the request may arrive or not, and be answered or not."""
    dispatch = worker.dispatch
    assert dispatch is not None
    yield Move(f"worker {number} sends nothing", world.worker(number, _replied(worker, Kind.NOT_SENT)))
    if habits.keeps_the_send_window and world.quiescent[dispatch]:
        return
    sent = world._replace(posts=put(world.posts, dispatch, world.posts[dispatch] + 1))
    arrived = sent._replace(created=put(sent.created, dispatch, True))
    ends = [(sent, kind) for kind in (Kind.REJECTED, Kind.THROTTLED, Kind.DOUBTED)]
    ends += [(arrived, kind) for kind in (Kind.ACCEPTED, Kind.FAILED_WITH_ID, Kind.DOUBTED)]
    for after, kind in ends:
        label = f"worker {number} posts dispatch {dispatch}: {kind}{' after creation' if after is arrived else ''}"
        again = kind is Kind.DOUBTED and not habits.sends_once
        heard = worker if again else _replied(worker, kind)
        yield Move(label, after.worker(number, heard), posted=dispatch)


def _replied(worker: Worker, kind: Kind) -> Worker:
    return worker._replace(at=At.REPLIED, reply=kind)


def _conclude(world: World, number: int, worker: Worker, habits: Habits) -> Iterator[Move]:
    """Save the end of the POST; a stale conclusion is thought over again with the row as it is by then."""
    assert worker.row is not None
    assert worker.dispatch is not None
    assert worker.reply is not None
    step = habits.table(worker.row, table.reply(worker.reply, worker.dispatch))
    done = world.worker(number, Worker())
    if not isinstance(step, ConcludeStep) or (worker.written and step.phase is None):
        yield Move(f"worker {number} has nothing more to save", done, ended=worker.dispatch)
        return
    saved = store.conclude(done, habits.guards, step, worker.dispatch, fresh=worker.fresh)
    label = f"worker {number} saves {worker.reply} of dispatch {worker.dispatch} for {worker.row.phase}: {_said(saved)}"
    if saved.applied or step.phase is None or not habits.asks_again_when_stale:
        yield Move(label, saved.world, saved, ended=worker.dispatch)
    else:
        again = worker._replace(row=saved.world.row, fresh=True, written=True)
        yield Move(label, saved.world.worker(number, again), saved)
    if world.budget.lost_answers:
        unanswered = saved.world.spent("lost_answers")
        yield Move(f"{label}, unseen", unanswered.worker(number, worker._replace(holds=False, fresh=False)), saved)


def _save_look(world: World, number: int, worker: Worker, habits: Habits) -> Move:
    assert worker.row is not None
    assert worker.row.job is not None
    assert worker.look is not None
    step = habits.table(worker.row, table.look(worker.row.job, worker.look))
    if not isinstance(step, SnapshotStep):
        return _end(world, number, worker, "saw nothing new", world.lane and world.lane._replace(is_leased=False))
    saved = store.snapshot(world.worker(number, Worker()), habits.guards, step, fresh=worker.fresh)
    label = f"worker {number} saves {worker.look}: {_said(saved)}"
    if saved.applied or not worker.holds or world.lane is None:
        return Move(label, saved.world, saved)
    return Move(label, saved.world._replace(lane=world.lane._replace(is_leased=False)), saved)


def _end(world: World, number: int, worker: Worker, verb: str, lane: Lane | None) -> Move:
    """A message's orderly end; one whose lease was lost changes nothing."""
    idle = world.worker(number, Worker())
    return Move(f"worker {number} {verb}", idle._replace(lane=lane) if worker.holds else idle)


def _time(world: World) -> Iterator[Move]:
    """Leases end; send windows and whatever was on its way pass. Earlier dispatches had their time before the present one was allowed."""
    if world.lane is not None and world.lane.is_leased and world.budget.lease_ends:
        yield Move("the lease ends", world.spent("lease_ends")._replace(lane=world.lane._replace(is_leased=False)))
    number = world.row.dispatch
    if number is not None and not world.quiescent[number]:
        quiet = put(world.quiescent, number, True)
        yield Move(f"dispatch {number} is quiescent", world._replace(quiescent=quiet))


def _person(world: World, habits: Habits) -> Iterator[Move]:
    """A person reads, and decides later on what he read."""
    if world.person is None:
        if world.budget.decisions and world.row.phase not in (Phase.CANCELLED, Phase.ABANDONED):
            yield Move("a person reads", world.spent("decisions")._replace(person=(world.row, True)))
        return
    row, fresh = world.person
    for event in _decisions(world, habits):
        step = habits.table(row, event)
        if isinstance(step, DecideStep):
            saved = store.decide(world._replace(person=None), habits.guards, step, fresh=fresh)
            yield Move(f"a person decides {event.kind}: {_said(saved)}", saved.world, saved)


def _decisions(world: World, habits: Habits) -> Iterator[ev.Event]:
    """What a person who looks at the service may decide: nobody proves absent what is there."""
    assert world.person is not None
    row, _ = world.person
    last = row.dispatch
    quiescent = last is None or world.quiescent[last] or not habits.waits_for_quiescence
    yield table.decision(Kind.CANCEL, row, is_quiescent=quiescent)
    yield table.decision(Kind.WRITE_OFF, row, is_quiescent=quiescent)
    yield table.decision(Kind.REDISPATCH, row, is_quiescent=quiescent)
    if last is not None and not world.created[last]:
        yield table.decision(Kind.PROVE_ABSENT, row, is_quiescent=quiescent)
    for job, created in enumerate(world.created):
        if created:
            yield table.decision(Kind.ADOPT, row, is_quiescent=quiescent, job=job)


def _said(saved: Saved) -> str:
    return "applied" if saved.applied else "stale"
