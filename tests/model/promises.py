"""The promises as predicates: over a world, and over one move from world to world. The first that is broken is named."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from coatcheck.core.operation import FINAL_RENDER_STATES, Outcome, Phase
from model.moves import KNOWN, Move
from model.store import rank
from model.world import World

UNSENT = (Outcome.NOT_SENT, Outcome.THROTTLED, Outcome.PROVEN_ABSENT)
OPEN_PHASES = (Phase.PREPARED, Phase.DISPATCHING, Phase.UNCERTAIN)


def one_post_per_dispatch(world: World) -> bool:
    """S1: POSTs per dispatch are at most one."""
    return all(count <= 1 for count in world.posts)


def posts_are_authorised(world: World) -> bool:
    """S1, S2: under one authorisation at most one dispatch was sent that is not proven unsent or throttled."""
    spent = [
        dispatch.authorisation
        for dispatch, count in zip(world.dispatches, world.posts, strict=True)
        if dispatch is not None and count and dispatch.outcome not in UNSENT
    ]
    return len(spent) == len(set(spent))


def proofs_are_true(world: World) -> bool:
    """What is recorded as created by nobody was created by nobody: neither now nor, once recorded, ever after."""
    return not any(
        dispatch is not None and created and rank(dispatch.outcome) == rank(Outcome.NOT_SENT)
        for dispatch, created in zip(world.dispatches, world.created, strict=True)
    )


def jobs_are_paid_for_knowingly(world: World) -> bool:
    """No more remote jobs exist than authorisations to spend were given."""
    return sum(world.created) <= world.row.authorisation


def nothing_is_stranded(world: World) -> bool:
    """S12: whatever is not closed has its lane, live or parked."""
    row = world.row
    waits = row.phase in OPEN_PHASES or (row.phase in KNOWN and row.render_state not in FINAL_RENDER_STATES)
    return world.lane is not None or not waits


def cancelled_means_unsent(world: World) -> bool:
    """Cancelled: closed before a POST under the present authorisation, or after one that was proven unsent."""
    return world.row.phase is not Phase.CANCELLED or not any(
        dispatch is not None and dispatch.authorisation == world.row.authorisation and dispatch.outcome not in UNSENT
        for dispatch in world.dispatches
    )


STATES: tuple[Callable[[World], bool], ...] = (
    one_post_per_dispatch,
    posts_are_authorised,
    proofs_are_true,
    jobs_are_paid_for_knowingly,
    nothing_is_stranded,
    cancelled_means_unsent,
)


def only_a_mark_precedes_a_post(before: World, move: Move) -> bool:
    """S1: when the first byte leaves, the mark is in the store."""
    return move.posted is None or before.dispatches[move.posted] is not None


def doubt_leads_to_uncertain(before: World, move: Move) -> bool:
    """S3: a lease that ends in dispatching leads only to uncertain."""
    left = before.row.phase is Phase.DISPATCHING and move.world.row.phase is not Phase.DISPATCHING
    return not (move.swept and left) or move.world.row.phase is Phase.UNCERTAIN


def the_first_id_stays(before: World, move: Move) -> bool:
    """S4: remote_job_id is written once."""
    return before.row.job is None or move.world.row.job == before.row.job


def final_states_stay(before: World, move: Move) -> bool:
    """S6: nothing replaces a final render state."""
    return before.row.render_state not in FINAL_RENDER_STATES or move.world.row.render_state is before.row.render_state


def every_write_is_one_revision(before: World, move: Move) -> bool:
    """S7: revisions have no gap, and no write goes without one."""
    changed = (before.row, before.dispatches) != (move.world.row, move.world.dispatches[: len(before.dispatches)])
    if move.saved is None:
        return not changed
    return move.saved.revisions == 1 if changed or move.saved.applied else move.saved.revisions <= 1


def nobody_stale_writes(_before: World, move: Move) -> bool:
    """A mark, a decision or a look that applied was decided on the row as it stood."""
    return move.saved is None or not move.saved.applied or move.saved.fresh


def outcomes_only_rise(before: World, move: Move) -> bool:
    """Later evidence never weakens earlier evidence."""
    return all(
        old is None or (new is not None and rank(new.outcome) >= rank(old.outcome))
        for old, new in zip(before.dispatches, move.world.dispatches, strict=False)
    )


def a_paid_id_is_kept(before: World, move: Move) -> bool:
    """A worker that heard of an id and lived on leaves it in the evidence; where its dispatch was open, it concludes the operation."""
    replied = [worker for worker in before.workers if worker.dispatch == move.ended and worker.reply is not None]
    if move.ended is None or not any(
        "accepted" in str(worker.reply) or "with_id" in str(worker.reply) for worker in replied
    ):
        return True
    kept = move.world.dispatches[move.ended]
    waited = before.row.dispatch == move.ended and before.row.phase in OPEN_PHASES
    return kept is not None and kept.job == move.ended and (not waited or move.world.row.job == move.ended)


MOVES: tuple[Callable[[World, Move], bool], ...] = (
    only_a_mark_precedes_a_post,
    doubt_leads_to_uncertain,
    the_first_id_stays,
    final_states_stay,
    every_write_is_one_revision,
    nobody_stale_writes,
    outcomes_only_rise,
    a_paid_id_is_kept,
)


ALL = tuple(promise.__name__ for promise in (*MOVES, *STATES))


@dataclass(frozen=True, slots=True)
class Judge:
    """Watches the named promises."""

    of_moves: tuple[Callable[[World, Move], bool], ...]
    of_worlds: tuple[Callable[[World], bool], ...]

    @classmethod
    def watching(cls, names: Collection[str]) -> "Judge":
        """A judge of some promises only, so that the story of each can be told."""
        return cls(
            tuple(promise for promise in MOVES if promise.__name__ in names),
            tuple(promise for promise in STATES if promise.__name__ in names),
        )

    def broken_by(self, before: World, move: Move) -> str | None:
        """The first promise that this move breaks."""
        return next((promise.__name__ for promise in self.of_moves if not promise(before, move)), None)

    def broken_in(self, world: World) -> str | None:
        """The first promise that does not hold in this world."""
        return next((promise.__name__ for promise in self.of_worlds if not promise(world)), None)
