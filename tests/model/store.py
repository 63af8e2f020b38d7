"""The store's guards in a few lines: what the saving statements promise, and one flag for each promise so that it can be broken.

Mirrors `sql/statements/store`: a mark, a decision and a look name the revision that was read; a conclusion names its dispatch and the phase;
evidence is written always; every write is a revision; money moves by differences.
"""

from typing import NamedTuple

from coatcheck.core.actions import Action, ParkReason
from coatcheck.core.operation import FINAL_RENDER_STATES, Outcome, Phase
from coatcheck.core.steps import ConcludeStep, DecideStep, Settlement, SnapshotStep
from model.table import Answer
from model.world import RIVAL, Attempt, Deadline, Dispatch, Lane, Money, Owner, Row, World

RANK = {outcome: outcome.rank for outcome in Outcome}
PROVEN = RANK[Outcome.NOT_SENT]
"""Refused, throttled, not sent, absent: nothing was created."""
UNSENT = (Outcome.NOT_SENT, Outcome.THROTTLED, Outcome.PROVEN_ABSENT)
KNOWN = (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)
DOUBTED = (Phase.DISPATCHING, Phase.UNCERTAIN)
OWNED = Lane(Action.RECONCILE, parked=ParkReason.UNCERTAIN)
"""The lane of an operation whose reply named another's job: a person's."""


class Guards(NamedTuple):
    """What the store insists on."""

    mark_names_revision: bool = True
    mark_needs_prepared: bool = True
    mark_holds_its_price: bool = True
    conclusion_names_dispatch: bool = True
    conclusion_names_phase: bool = True
    conclusion_names_wish: bool = True
    decision_names_revision: bool = True
    look_names_revision: bool = True
    look_names_job: bool = True
    evidence_is_written_always: bool = True
    outcome_only_rises: bool = True
    first_id_stays: bool = True
    evidence_is_a_revision: bool = True
    jobs_have_one_owner: bool = True
    orphans_are_listed: bool = True
    doubles_are_displaced: bool = True
    doubt_keeps_its_hold: bool = True


class Saved(NamedTuple):
    """What became of a step: whether it applied, whether it was decided on the row as it stood, and the revisions that it made."""

    world: World
    applied: bool
    fresh: bool
    revisions: int


def stale(world: World, *, fresh: bool) -> Saved:
    """Nothing was written."""
    return Saved(world, applied=False, fresh=fresh, revisions=0)


# -- a mark ------------------------------------------------------------------------------------------------------------


def mark(world: World, guards: Guards, *, fresh: bool, leased_to: Lane) -> Saved:
    """Commit "may be sent from now on", and hold its price; the lane is taken until its lease ends."""
    row = world.row
    prepared = row.phase is Phase.PREPARED and not row.is_withdrawn
    if (guards.mark_names_revision and not fresh) or (guards.mark_needs_prepared and not prepared):
        return stale(world, fresh=fresh)
    attempt = Attempt(row.authorisation, Dispatch())
    marked = tried(world, attempt)._replace(held=world.held + guards.mark_holds_its_price)
    marked = written(marked, row._replace(phase=Phase.DISPATCHING, dispatch=len(world.attempts)))
    return Saved(aimed(marked, leased_to), applied=True, fresh=fresh, revisions=1)


def tried(world: World, attempt: Attempt) -> World:
    """One more mark that was tried; one without a row was not committed."""
    return world._replace(attempts=(*world.attempts, attempt))


# -- the end of a POST -------------------------------------------------------------------------------------------------


def conclude(world: World, guards: Guards, told: Answer, number: int, *, fresh: bool) -> Saved:
    """Save the end of a POST: evidence always, the conclusion where dispatch and phase allow it."""
    step, job, row = told.step, told.job, world.row
    assert isinstance(step, ConcludeStep)
    attempt = world.attempts[number]
    taken = _is_taken(world, number)
    concludes = step.phase is not None and _is_allowed(world, guards, step, number, fresh=fresh, taken=taken)
    if not concludes and not guards.evidence_is_written_always:
        return stale(world, fresh=fresh)
    is_owned = concludes and guards.jobs_have_one_owner and _owner(world, job) is Owner.RIVALS
    world = _registered(world, guards, job, concludes=concludes)
    was = attempt.row
    kept = _evidence(guards, was, step.outcome, job, displaced=taken)
    money = _verdict(was, step.outcome, job, concludes=concludes, guards=guards)
    world = _paid(world, was, money)
    world = world.attempt(number, world.attempts[number]._replace(row=kept._replace(money=money)))
    if not concludes:
        return Saved(written(world, row), applied=False, fresh=True, revisions=int(guards.evidence_is_a_revision))
    assert step.phase is not None
    if is_owned:
        told = told._replace(aim=OWNED, keeps=False)
    first = row.job if guards.first_id_stays and row.job is not None else job
    phase, saved_job = (Phase.UNCERTAIN, row.job) if is_owned else (step.phase, first)
    world = written(world, row._replace(phase=phase, dispatch=number, job=saved_job))
    return Saved(relaned(world, told), applied=True, fresh=True, revisions=1)


def _is_allowed(world: World, guards: Guards, step: ConcludeStep, number: int, *, fresh: bool, taken: bool) -> bool:
    """Whether a reply concludes: its dispatch is the present one, and nothing that is proven speaks against it."""
    row, mine = world.row, world.attempts[number].row
    if not guards.conclusion_names_dispatch:
        return fresh
    if mine is not None and guards.outcome_only_rises and RANK[step.outcome] < RANK[mine.outcome]:
        return False
    wishes = step.phase in (Phase.PREPARED, Phase.CANCELLED) and guards.conclusion_names_wish
    if wishes and step.withdrawn != row.is_withdrawn:
        return False
    if row.dispatch != number:
        # the mark was lost with a failover: an id still belongs here, and what may have been sent is not sent again
        return mine is None and not taken and row.phase is Phase.PREPARED
    waits = row.phase in DOUBTED or (row.phase is Phase.PREPARED and step.remote_job_id is not None)
    return waits or not guards.conclusion_names_phase


def _is_taken(world: World, number: int) -> bool:
    """Whether another dispatch, not proven unsent, has this one's authorisation."""
    mine = world.attempts[number].authorisation
    return any(
        other != number and held.authorisation == mine and held.row is not None and _spends(held.row)
        for other, held in enumerate(world.attempts)
    )


def _spends(row: Dispatch) -> bool:
    return row.outcome not in UNSENT and not row.is_displaced


def _evidence(guards: Guards, was: Dispatch | None, outcome: Outcome, job: int | None, *, displaced: bool) -> Dispatch:
    """The dispatch's row with what is known now; one that vanished is written again."""
    displaced = displaced and guards.doubles_are_displaced
    if was is None:
        return Dispatch(outcome, job, is_displaced=displaced)
    rises = RANK[outcome] > RANK[was.outcome]
    return was._replace(
        outcome=outcome if rises or not guards.outcome_only_rises else was.outcome,
        job=job if was.job is None else was.job,
        is_displaced=was.is_displaced or (displaced and rises),
    )


def _verdict(was: Dispatch | None, outcome: Outcome, job: int | None, *, concludes: bool, guards: Guards) -> Money:
    """What becomes of the money: an id that concludes holds again, a proof frees it, and what nobody can decide any more counts as spent."""
    if concludes and job is not None:
        return Money.HELD
    if was is not None and RANK[outcome] <= RANK[was.outcome]:
        return was.money
    if RANK[outcome] == PROVEN or (outcome is Outcome.UNCERTAIN and not guards.doubt_keeps_its_hold):
        return Money.FREE
    if not concludes and (job is not None or was is None):
        return Money.SPENT
    return Money.HELD if was is None else was.money


# -- decisions and looks -----------------------------------------------------------------------------------------------


def decide(world: World, guards: Guards, told: Answer, *, fresh: bool) -> Saved:
    """Save a sweep's or a person's decision."""
    step, job, row = told.step, told.job, world.row
    assert isinstance(step, DecideStep)
    owned = guards.jobs_have_one_owner and _owner(world, job) not in (None, Owner.NOBODY, Owner.ORPHAN)
    if (guards.decision_names_revision and not fresh) or owned:
        return stale(world, fresh=fresh)
    # an orphan was named by a reply to one of the dispatches, and goes on belonging to that one
    number = job if _owner(world, job) is Owner.ORPHAN else row.dispatch
    world = _registered(world, guards, job, concludes=True)
    if number is not None and world.attempts[number].row is not None:
        world = _settled(world, guards, step, job, number)
    decided = row._replace(
        phase=step.phase,
        render_state=step.render_state,
        authorisation=row.authorisation + step.authorises,
        is_cancel_requested=(row.is_cancel_requested or step.requests_cancel) and not step.clears_withdrawal,
        deadline=Deadline.NONE if step.clears_withdrawal else row.deadline,
        dispatch=number,
        job=row.job if job is None else job,
    )
    return Saved(relaned(written(world, decided), told), applied=True, fresh=fresh, revisions=1)


def _settled(world: World, guards: Guards, step: DecideStep, job: int | None, number: int) -> World:
    """What a decision makes of its dispatch: an adopted id holds again; if that is an earlier one's, the present one counts as spent."""
    was = world.attempts[number].row
    assert was is not None
    money = was.money
    if job is not None:
        money = Money.HELD
        present = world.row.dispatch
        if present is not None and present != number:
            world = _moved(world, present, Money.SPENT)
    elif was.money is Money.HELD and step.settles is not None:
        money = Money.FREE if step.settles is Settlement.FREE else Money.SPENT
    elif step.outcome is Outcome.UNCERTAIN and not guards.doubt_keeps_its_hold:
        money = Money.FREE
    outcome = step.outcome
    rises = outcome is not None and (RANK[outcome] > RANK[was.outcome] or not guards.outcome_only_rises)
    row = was._replace(outcome=outcome if rises and outcome is not None else was.outcome, money=money)
    row = row._replace(job=job if row.job is None else row.job)
    world = _paid(world, was, money)
    return world.attempt(number, world.attempts[number]._replace(row=row))


def _moved(world: World, number: int, money: Money) -> World:
    """One dispatch settled, unless it is."""
    attempt = world.attempts[number]
    if attempt.row is None or attempt.row.money is not Money.HELD:
        return world
    world = _paid(world, attempt.row, money)
    return world.attempt(number, attempt._replace(row=attempt.row._replace(money=money)))


def snapshot(world: World, guards: Guards, told: Answer, *, fresh: bool) -> Saved:
    """Save what a look changed; a final render settles the money."""
    step, row = told.step, world.row
    assert isinstance(step, SnapshotStep)
    known = (row.job == told.job or not guards.look_names_job) and row.phase in KNOWN
    replaces_final = row.render_state in FINAL_RENDER_STATES and row.render_state is not step.render_state
    if guards.look_names_revision and not (fresh and known and not replaces_final):
        return stale(world, fresh=fresh)
    if step.settles and row.dispatch is not None:
        world = _moved(world, row.dispatch, Money.SPENT)
    world = written(world, row._replace(render_state=step.render_state))
    return Saved(relaned(world, told), applied=True, fresh=fresh, revisions=1)


# -- what all of them write --------------------------------------------------------------------------------------------


def _owner(world: World, job: int | None) -> Owner | None:
    if job is None:
        return None
    return Owner.RIVALS if job == RIVAL else world.attempts[job].owner


def _registered(world: World, guards: Guards, job: int | None, *, concludes: bool) -> World:
    """The row of `remote_jobs`: won by the first, an orphan made the owner, another operation's left alone."""
    if job is None or job in (RIVAL, world.row.job):
        return world
    attempt = world.attempts[job]
    if attempt.owner is Owner.NOBODY:
        owner = Owner.OURS if concludes else Owner.ORPHAN
        if owner is Owner.ORPHAN and not guards.orphans_are_listed:
            return world
    elif attempt.owner is Owner.ORPHAN and concludes:
        owner = Owner.OURS
    else:
        return world
    return world.attempt(job, attempt._replace(owner=owner))


def _paid(world: World, was: Dispatch | None, money: Money) -> World:
    """The allowance, moved by the difference."""
    before = None if was is None else was.money
    if before is money:
        return world
    return world._replace(
        held=world.held + (money is Money.HELD) - (before is Money.HELD),
        charged=world.charged + (money is Money.SPENT) - (before is Money.SPENT),
    )


def written(world: World, row: Row) -> World:
    """A new revision: whatever anybody read before is old now."""
    workers = tuple(worker._replace(fresh=False) if worker.fresh else worker for worker in world.workers)
    person = world.person._replace(fresh=False) if world.person is not None else None
    return World(row, world.lane, workers, person, world.attempts, world.spool, world.held, world.charged)


def relaned(world: World, told: Answer) -> World:
    """What the step says about lane 0. A look is made due where it waits, and where it was set aside if that is what was decided."""
    lane = world.lane
    if not told.keeps:
        return aimed(world, told.aim)
    if told.looks and lane is not None and not lane.is_leased and (lane.parked is None or told.resumes):
        return aimed(world, Lane(lane.action))
    return world


def aimed(world: World, lane: Lane | None) -> World:
    """The lane with a new token: whoever held it holds nothing any more."""
    workers = tuple(worker._replace(holds=False) if worker.holds else worker for worker in world.workers)
    return World(world.row, lane, workers, world.person, world.attempts, world.spool, world.held, world.charged)


def failed_over(world: World) -> World:
    """The primary is gone and with it the last write, a mark: the operation is prepared as it was, and its message due."""
    row, lost = world.row, world.row.dispatch
    assert lost is not None
    former = max((number for number in range(lost) if world.attempts[number].row is not None), default=None)
    gone = world.attempt(lost, world.attempts[lost]._replace(row=None, is_lost=True))
    back = written(gone, row._replace(phase=Phase.PREPARED, dispatch=former))._replace(held=world.held - 1)
    return aimed(back, Lane())
