"""The store's guards in a few lines: what the saving statements promise, and one flag for each promise so that it can be broken.

Mirrors `sql/statements/store`: a mark, a decision and a look name the revision that was read; a conclusion names its dispatch and the phase;
evidence is written always; every write is a revision.
"""

from typing import NamedTuple

from coatcheck.core.actions import COURSE, Action, Aim, Drop, DropAll, LaneChange, Park
from coatcheck.core.operation import FINAL_RENDER_STATES, Outcome, Phase
from coatcheck.core.steps import ConcludeStep, DecideStep, SnapshotStep
from model.table import number_of
from model.world import Dispatch, Lane, Row, World, put

RANK = {Outcome.OPEN: 0, Outcome.UNCERTAIN: 1, Outcome.ACCEPTED: 3, Outcome.SUBMISSION_FAILED: 3}
"""Refused, throttled, not sent and absent are 2: an outcome only rises."""


class Guards(NamedTuple):
    """What the store insists on."""

    mark_names_revision: bool = True
    mark_needs_prepared: bool = True
    conclusion_names_dispatch: bool = True
    conclusion_names_phase: bool = True
    decision_names_revision: bool = True
    look_names_revision: bool = True
    evidence_is_written_always: bool = True
    outcome_only_rises: bool = True
    first_id_stays: bool = True
    evidence_is_a_revision: bool = True


class Saved(NamedTuple):
    """What became of a step: whether it applied, whether it was decided on the row as it stood, and the revisions that it made."""

    world: World
    applied: bool
    fresh: bool
    revisions: int


def rank(outcome: Outcome) -> int:
    return RANK.get(outcome, 2)


def mark(world: World, guards: Guards, *, fresh: bool) -> Saved:
    """Commit "may be sent from now on"; the lane is taken until its lease ends."""
    row = world.row
    prepared = row.phase is Phase.PREPARED and not row.is_withdrawn
    if (guards.mark_names_revision and not fresh) or (guards.mark_needs_prepared and not prepared):
        return Saved(world, applied=False, fresh=fresh, revisions=0)
    number = len(world.dispatches)
    marked = place(world, Dispatch(authorisation=row.authorisation))
    marked = _written(marked, row._replace(phase=Phase.DISPATCHING, dispatch=number))
    return Saved(_aimed(marked, Lane(Action.RECONCILE, is_leased=True)), applied=True, fresh=fresh, revisions=1)


def place(world: World, dispatch: Dispatch | None) -> World:
    """One more mark that was tried; None: it was not committed."""
    return world._replace(
        dispatches=(*world.dispatches, dispatch),
        posts=(*world.posts, 0),
        created=(*world.created, False),
        quiescent=(*world.quiescent, False),
    )


def conclude(world: World, guards: Guards, step: ConcludeStep, dispatch: int, *, fresh: bool) -> Saved:
    """Save the end of a POST: evidence always, the conclusion where dispatch and phase allow it."""
    row, job = world.row, number_of(step.remote_job_id)
    if guards.conclusion_names_dispatch:
        open_phases = (Phase.DISPATCHING, Phase.UNCERTAIN, *((Phase.PREPARED,) if job is not None else ()))
        allowed = row.dispatch == dispatch and (row.phase in open_phases or not guards.conclusion_names_phase)
    else:
        allowed = fresh
    same_wish = step.phase not in (Phase.PREPARED, Phase.CANCELLED) or step.withdrawn == row.is_withdrawn
    concludes = step.phase is not None and allowed and same_wish
    if not concludes and not guards.evidence_is_written_always:
        return Saved(world, applied=False, fresh=fresh, revisions=0)
    world = _evidence(world, guards, dispatch, step.outcome, job)
    if concludes and step.phase is not None:
        kept = row.job if guards.first_id_stays and row.job is not None else job
        world = _written(world, row._replace(phase=step.phase, dispatch=dispatch, job=kept))
        return Saved(_relaned(world, step.lanes), applied=True, fresh=True, revisions=1)
    world = _written(world, row)
    return Saved(world, applied=False, fresh=True, revisions=int(guards.evidence_is_a_revision))


def decide(world: World, guards: Guards, step: DecideStep, *, fresh: bool) -> Saved:
    """Save a sweep's or a person's decision."""
    if guards.decision_names_revision and not fresh:
        return Saved(world, applied=False, fresh=fresh, revisions=0)
    row, job = world.row, number_of(step.remote_job_id)
    if step.outcome is not None and row.dispatch is not None:
        world = _evidence(world, guards, row.dispatch, step.outcome, None)
    decided = row._replace(
        phase=step.phase,
        render_state=step.render_state,
        authorisation=row.authorisation + step.authorises,
        is_withdrawn=(row.is_withdrawn or step.requests_cancel) and not step.clears_withdrawal,
        job=row.job if job is None else job,
    )
    return Saved(_relaned(_written(world, decided), step.lanes), applied=True, fresh=fresh, revisions=1)


def snapshot(world: World, guards: Guards, step: SnapshotStep, *, fresh: bool) -> Saved:
    """Save what a look changed."""
    row = world.row
    known = row.job == number_of(step.remote_job_id) and row.phase in (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)
    replaces_final = row.render_state in FINAL_RENDER_STATES and row.render_state is not step.render_state
    if guards.look_names_revision and not (fresh and known and not replaces_final):
        return Saved(world, applied=False, fresh=fresh, revisions=0)
    world = _written(world, row._replace(render_state=step.render_state))
    return Saved(_relaned(world, step.lanes), applied=True, fresh=fresh, revisions=1)


def _evidence(world: World, guards: Guards, number: int, outcome: Outcome, job: int | None) -> World:
    kept = world.dispatches[number]
    if kept is None:
        return world
    rises = rank(outcome) > rank(kept.outcome) or not guards.outcome_only_rises
    row = kept._replace(outcome=outcome if rises else kept.outcome, job=job if kept.job is None else kept.job)
    return world._replace(dispatches=put(world.dispatches, number, row))


def _written(world: World, row: Row) -> World:
    """A new revision: whatever anybody read before is old now."""
    first, second = world.workers
    person = None if world.person is None else (world.person[0], False)
    return world._replace(row=row, workers=(first._replace(fresh=False), second._replace(fresh=False)), person=person)


def _relaned(world: World, changes: tuple[LaneChange, ...]) -> World:
    """What the step says about lane 0; others are of no concern here."""
    for change in changes:
        match change:
            case Aim(lane=lane, action=action) if lane == COURSE:
                world = _aimed(world, Lane(action))
            case Park(lane=lane, action=action) if lane == COURSE:
                world = _aimed(world, Lane(action, is_parked=True))
            case DropAll():
                world = _aimed(world, None)
            case Drop(lane=lane) if lane == COURSE:
                world = _aimed(world, None)
            case _:
                pass
    return world


def _aimed(world: World, lane: Lane | None) -> World:
    """The lane with a new token: whoever held it holds nothing any more."""
    first, second = world.workers
    return world._replace(lane=lane, workers=(first._replace(holds=False), second._replace(holds=False)))


claimed = _aimed
