"""What one worker does next, as the handlers do it.

A worker's move ends where the process may be interrupted: between reading, marking, sending, saving and looking others may do anything.
"""

from collections.abc import Iterator

from coatcheck.core.actions import Action, ParkReason
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.operation import FINAL_RENDER_STATES, Phase, RenderState
from coatcheck.core.steps import ConcludeStep, DecideStep, MarkStep, SnapshotStep
from model import store
from model.move import Habits, Move, said
from model.store import KNOWN, Saved
from model.table import About
from model.world import IDLE, RIVAL, At, Attempt, Bounds, Lane, Line, Row, Worker, World

CLOSED = (Phase.REJECTED, Phase.CANCELLED, Phase.ABANDONED)
DOUBTING = Lane(Action.RECONCILE, is_leased=True)
"""The lane under a mark: whoever takes it when its lease ended, doubts."""


def works(world: World, number: int, worker: Worker, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    """Whatever comes next for a worker that stands where it stands."""
    match worker.at:
        case At.IDLE:
            yield from _claim(world, number, bounds)
            yield from _replay(world, number, habits)
        case At.CLAIMED:
            loaded = worker._replace(at=At.LOADED, row=world.row, fresh=True)
            yield Move((number, "reads", world.row.phase), world.worker(number, loaded))
        case At.LOADED:
            yield from _handle(world, number, worker, habits, bounds)
        case At.UNSURE:
            yield _after_unseen_commit(world, number, worker)
            if not habits.posts_only_on_a_seen_commit:
                assert worker.dispatch is not None
                sends = world.worker(number, _marked(worker, worker.dispatch, world.row))
                yield Move((number, "sends all the same"), sends)
        case At.MARKED:
            yield from _post(world, number, worker, habits, bounds)
        case At.REPLIED:
            yield from _conclude(world, number, worker, habits, bounds)
        case At.LOOKED:
            yield _save_look(world, number, worker, habits)


# -- messages ----------------------------------------------------------------------------------------------------------


def _claim(world: World, number: int, bounds: Bounds) -> Iterator[Move]:
    lane = world.lane
    if lane is None or lane.is_leased or lane.parked is not None:
        return
    leased = store.aimed(world, lane._replace(is_leased=True))
    is_last = bounds.lease_limit > 0 and lane.bad_leases >= bounds.lease_limit
    worker = Worker(at=At.CLAIMED, holds=True, action=lane.action, is_last_lease=is_last)
    if not bounds.reads_apart:
        worker = worker._replace(at=At.LOADED, row=world.row, fresh=True)
    yield Move((number, "claims", lane.action, "in", world.row.phase), leased.worker(number, worker))


def _handle(world: World, number: int, worker: Worker, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    assert worker.row is not None
    phase = worker.row.phase
    is_open = phase is Phase.DISPATCHING and habits.doubts_before_parking
    if worker.is_last_lease and not is_open:
        yield _park(world, number, worker, ParkReason.LEASE_COUNT)
    elif phase is Phase.DISPATCHING and worker.action in (Action.DISPATCH, Action.RECONCILE):
        yield _sweep(world, number, worker, habits)
    elif phase is Phase.PREPARED and worker.action is Action.DISPATCH:
        yield from _dispatch(world, number, worker, habits, bounds)
    elif phase is Phase.UNCERTAIN:
        yield _park(world, number, worker, ParkReason.UNCERTAIN)
    elif phase in CLOSED or worker.row.render_state in FINAL_RENDER_STATES:
        yield _end(world, number, worker, "acknowledges", None)
    elif phase in KNOWN and worker.action is Action.OBSERVE:
        yield from _look(world, number, worker, bounds)
    elif phase in KNOWN and worker.action is Action.DISPATCH:
        yield _decide(world, number, worker, Kind.REPEATED, habits)
    else:
        yield _release(world, number, worker, "releases")


def _park(world: World, number: int, worker: Worker, reason: ParkReason) -> Move:
    lane = world.lane and world.lane._replace(is_leased=False, parked=reason, bad_leases=0)
    return _end(world, number, worker, f"parks as {reason}", lane)


def _release(world: World, number: int, worker: Worker, verb: str) -> Move:
    lane = world.lane and world.lane._replace(is_leased=False, bad_leases=0)
    return _end(world, number, worker, verb, lane)


def _end(world: World, number: int, worker: Worker, verb: str, lane: Lane | None) -> Move:
    """A message's orderly end; one whose lease was lost changes nothing."""
    idle = world.worker(number, IDLE)
    return Move((number, verb), idle._replace(lane=lane) if worker.holds else idle)


def _sweep(world: World, number: int, worker: Worker, habits: Habits) -> Move:
    """A lease ended in dispatching: doubt, if this worker still holds the message."""
    if habits.sweeps_only_what_it_holds and not worker.holds:
        return Move((number, "lost its lease"), world.worker(number, IDLE))
    return _decide(world, number, worker, Kind.LEASE_ENDED, habits)._replace(swept=True)


def _decide(world: World, number: int, worker: Worker, kind: Kind, habits: Habits) -> Move:
    assert worker.row is not None
    told = habits.table(worker.row, kind, About())
    idle = world.worker(number, IDLE)
    if not isinstance(told.step, DecideStep):
        return Move((number, "finds", kind, "refused"), idle)
    saved = store.decide(idle, habits.guards, told, fresh=worker.fresh)
    return Move((number, "decides", kind, said(saved)), saved.world, saved=saved)


# -- the one POST ------------------------------------------------------------------------------------------------------


def _dispatch(world: World, number: int, worker: Worker, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    """Mark. The answer to its commit may be lost, and then nobody knows whether there was a commit."""
    assert worker.row is not None
    if worker.row.is_withdrawn:
        yield _decide(world, number, worker, Kind.DEADLINE_PASSED, habits)
        return
    dispatch = len(world.attempts)
    if dispatch >= bounds.marks:
        return
    told = habits.table(worker.row, Kind.MARK, About(dispatch))
    assert isinstance(told.step, MarkStep)
    if not habits.posts_after_the_mark:
        unmarked = store.tried(world, Attempt(world.row.authorisation))
        yield Move((number, "does not mark"), unmarked.worker(number, _marked(worker, dispatch, world.row)))
    saved = store.mark(world, habits.guards, fresh=worker.fresh, leased_to=DOUBTING)
    if not saved.applied:
        yield _release(world, number, worker, "finds its mark stale and releases")
        return
    label = (number, "marks dispatch", dispatch)
    yield Move(label, saved.world.worker(number, _marked(worker, dispatch, saved.world.row)), saved=saved)
    if bounds.lost_answers:
        unsure = Worker(at=At.UNSURE, row=worker.row, dispatch=dispatch)
        unseen = saved.world.worker(number, unsure)
        yield Move((*label, "and does not see it"), unseen, "lost_answers", saved=saved)
        missed = store.tried(world, Attempt(world.row.authorisation)).worker(
            number, unsure._replace(holds=worker.holds)
        )
        yield Move((*label, "and it is not committed, which is not seen"), missed, "lost_answers")


def _marked(worker: Worker, dispatch: int, row: Row) -> Worker:
    return Worker(at=At.MARKED, holds=True, action=worker.action, row=row, fresh=True, dispatch=dispatch)


def _after_unseen_commit(world: World, number: int, worker: Worker) -> Move:
    """No POST: what is found there is recorded as not sent."""
    if world.row.dispatch != worker.dispatch:
        return _release(world, number, worker, "finds no mark")
    replied = Worker(at=At.REPLIED, row=world.row, fresh=True, dispatch=worker.dispatch, reply=Kind.NOT_SENT)
    return Move((number, "finds its mark"), world.worker(number, replied))


def _post(world: World, number: int, worker: Worker, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    """The one POST: past the send window no byte leaves; before it, the request may arrive or not, and be answered or not."""
    dispatch = worker.dispatch
    assert dispatch is not None
    yield Move((number, "sends nothing"), world.worker(number, _replied(worker, Kind.NOT_SENT)))
    attempt = world.attempts[dispatch]
    if habits.keeps_the_send_window and attempt.is_quiet:
        return
    sent = world.attempt(dispatch, attempt._replace(posts=attempt.posts + 1))
    arrived = world.attempt(dispatch, attempt._replace(posts=attempt.posts + 1, is_created=True))
    label = (number, "posts dispatch", dispatch)
    for after, kind, said_of in _ENDS:
        there = arrived if after else sent
        again = kind is Kind.DOUBTED and not habits.sends_once
        job = dispatch if kind in (Kind.ACCEPTED, Kind.FAILED_WITH_ID) else None
        heard = worker if again else _replied(worker, kind, job)
        yield Move((*label, said_of), there.worker(number, heard), posted=dispatch)
    if bounds.strays:
        heard = _replied(worker, Kind.ACCEPTED, RIVAL)
        yield Move((*label, "and is told another's job"), sent.worker(number, heard), "strays", posted=dispatch)


_ENDS = (
    (False, Kind.REJECTED, "and is refused"),
    (False, Kind.THROTTLED, "and is throttled"),
    (False, Kind.DOUBTED, "which does not arrive, and hears nothing"),
    (True, Kind.ACCEPTED, "and hears its id"),
    (True, Kind.FAILED_WITH_ID, "and hears of a failure with an id"),
    (True, Kind.DOUBTED, "which arrives, and hears nothing"),
)


def _replied(worker: Worker, kind: Kind, job: int | None = None) -> Worker:
    return worker._replace(at=At.REPLIED, reply=kind, job=job)


# -- saving ------------------------------------------------------------------------------------------------------------


def _conclude(world: World, number: int, worker: Worker, habits: Habits, bounds: Bounds) -> Iterator[Move]:
    """Save the end of the POST; a stale conclusion is thought over again with the row as it is by then."""
    assert worker.row is not None
    assert worker.dispatch is not None
    assert worker.reply is not None
    told = habits.table(worker.row, worker.reply, About(worker.dispatch, worker.job))
    done = _unspooled(world.worker(number, IDLE), worker)
    if not isinstance(told.step, ConcludeStep) or (worker.written and told.step.phase is None):
        yield Move((number, "has nothing more to save"), done, ended=worker.dispatch, named=worker.job)
        return
    saved = store.conclude(done, habits.guards, told, worker.dispatch, fresh=worker.fresh)
    label = (number, "saves", worker.reply, "of dispatch", worker.dispatch, "for", worker.row.phase, said(saved))
    if saved.applied or told.step.phase is None or not habits.asks_again_when_stale:
        yield Move(label, saved.world, saved=saved, ended=worker.dispatch, named=worker.job)
    else:
        yield Move(label, _again(saved, world, number, worker), saved=saved)
    if bounds.lost_answers:
        unanswered = saved.world._replace(spool=world.spool)
        unsure = unanswered.worker(number, worker._replace(holds=False, fresh=False))
        yield Move((*label, "and does not see it"), unsure, "lost_answers", saved=saved)
    if bounds.spoolings and not worker.spooled:
        line = Line(worker.dispatch, worker.reply, worker.job)
        spooled = world.worker(number, IDLE)._replace(spool=tuple(sorted((*world.spool, line))))
        yield Move(
            (number, "leaves", worker.reply, "of dispatch", worker.dispatch, "in its spool"), spooled, "spoolings"
        )


def _again(saved: Saved, world: World, number: int, worker: Worker) -> World:
    """With the row as it is by then; one that is prepared and names another dispatch may have lost this mark with a failover."""
    row = saved.world.row
    if row.phase is Phase.PREPARED and row.dispatch != worker.dispatch and world.attempts[worker.dispatch or 0].is_lost:
        row = row._replace(phase=Phase.DISPATCHING, dispatch=worker.dispatch)
    again = worker._replace(row=row, fresh=row is saved.world.row, written=True)
    return saved.world.worker(number, again)._replace(spool=world.spool)


def _replay(world: World, number: int, habits: Habits) -> Iterator[Move]:
    """Take up what a dead worker of this host left on its disk: the line stays there until it is saved."""
    for line in world.spool:
        if any(worker.spooled and worker.dispatch == line.dispatch for worker in world.workers):
            continue
        row, lost = world.row, world.attempts[line.dispatch].row is None
        fresh = not (lost and row.phase is Phase.PREPARED)
        if not fresh:
            row = row._replace(phase=Phase.DISPATCHING, dispatch=line.dispatch)
        worker = Worker(
            at=At.REPLIED, row=row, fresh=fresh, dispatch=line.dispatch, reply=line.reply, job=line.job, spooled=True
        )
        taken = world if habits.spool_is_kept_until_saved else _unspooled(world, worker)
        yield Move((number, "takes up dispatch", line.dispatch, "from a spool"), taken.worker(number, worker))


def _unspooled(world: World, worker: Worker) -> World:
    if not worker.spooled:
        return world
    return world._replace(spool=tuple(line for line in world.spool if line.dispatch != worker.dispatch))


# -- looks -------------------------------------------------------------------------------------------------------------


def _look(world: World, number: int, worker: Worker, bounds: Bounds) -> Iterator[Move]:
    """Whatever the service may say of the job."""
    assert worker.row is not None
    for state in (RenderState.RENDERING, RenderState.SUCCEEDED, RenderState.FAILED, RenderState.MISSING):
        looked = worker._replace(at=At.LOOKED, look=state, job=worker.row.job)
        yield Move((number, "sees", state), world.worker(number, looked))
    if bounds.strays:
        looked = worker._replace(at=At.LOOKED, look=RenderState.SUCCEEDED, job=RIVAL)
        yield Move((number, "sees another's job"), world.worker(number, looked), "strays")


def _save_look(world: World, number: int, worker: Worker, habits: Habits) -> Move:
    assert worker.row is not None
    told = habits.table(worker.row, Kind.SNAPSHOT, About(job=worker.job, state=worker.look))
    idle = world.worker(number, IDLE)
    if isinstance(told.step, DecideStep):
        saved = store.decide(idle, habits.guards, told, fresh=worker.fresh)
    elif isinstance(told.step, SnapshotStep):
        saved = store.snapshot(idle, habits.guards, told, fresh=worker.fresh)
    else:
        return _release(world, number, worker, "saw nothing new")
    label = (number, "saves", worker.look, said(saved))
    if saved.applied or not worker.holds or world.lane is None:
        return Move(label, saved.world, saved=saved, named=worker.job)
    released = world.lane._replace(is_leased=False, bad_leases=0)
    return Move(label, saved.world._replace(lane=released), saved=saved, named=worker.job)
