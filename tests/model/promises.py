"""The promises as predicates: over a world, and over one move from world to world. The first that is broken is named."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from coatcheck.core.operation import FINAL_RENDER_STATES, Outcome, Phase
from model.moves import Move
from model.store import DOUBTED, KNOWN, PROVEN, RANK, UNSENT
from model.world import RIVAL, At, Attempt, Lane, Money, Owner, Row, World

OPEN_PHASES = (Phase.PREPARED, *DOUBTED)


class Stored(NamedTuple):
    """What of a world its promises may read. They see nothing else, so two worlds of which this is the same are judged once."""

    row: Row
    lane: Lane | None
    attempts: tuple[Attempt, ...]
    held: int
    charged: int


def one_post_per_dispatch(stored: Stored) -> bool:
    """S1: POSTs per dispatch are at most one."""
    return all(attempt.posts <= 1 for attempt in stored.attempts)


def posts_are_authorised(stored: Stored) -> bool:
    """S1, S2: under one authorisation at most one dispatch was sent that is not proven unsent or throttled, and not shown as displaced."""
    spent = [
        attempt.authorisation
        for attempt in stored.attempts
        if attempt.posts and attempt.row is not None and _counts(attempt.row.outcome, attempt.row.is_displaced)
    ]
    return len(spent) == len(set(spent))


def _counts(outcome: Outcome, is_displaced: bool) -> bool:
    return outcome not in UNSENT and not is_displaced


def proofs_are_true(stored: Stored) -> bool:
    """What is recorded as created by nobody was created by nobody: neither now nor, once recorded, ever after."""
    return not any(
        attempt.is_created and attempt.row is not None and RANK[attempt.row.outcome] == PROVEN
        for attempt in stored.attempts
    )


def jobs_are_paid_for_knowingly(stored: Stored) -> bool:
    """No more remote jobs exist than authorisations to spend were given, but for those whose mark a failover took."""
    created = sum(attempt.is_created and not attempt.is_lost for attempt in stored.attempts)
    return created <= stored.row.authorisation


def nothing_is_stranded(stored: Stored) -> bool:
    """S12: whatever is not closed has its lane, live or parked."""
    row = stored.row
    waits = row.phase in OPEN_PHASES or (row.phase in KNOWN and row.render_state not in FINAL_RENDER_STATES)
    return stored.lane is not None or not waits


def an_open_dispatch_is_not_set_aside(stored: Stored) -> bool:
    """L2: what is dispatching gets its reply or its doubt, and never waits for a person before."""
    return stored.row.phase is not Phase.DISPATCHING or stored.lane is None or stored.lane.parked is None


def cancelled_means_unsent(stored: Stored) -> bool:
    """Cancelled: closed before a POST under the present authorisation, or after one that was proven unsent."""
    return stored.row.phase is not Phase.CANCELLED or not any(
        attempt.row is not None
        and attempt.authorisation == stored.row.authorisation
        and _counts(attempt.row.outcome, attempt.row.is_displaced)
        for attempt in stored.attempts
    )


def a_job_has_one_owner(stored: Stored) -> bool:
    """S5: what the operation calls its own is no other operation's."""
    job = stored.row.job
    return job is None or (job != RIVAL and stored.attempts[job].owner is Owner.OURS)


def the_allowance_adds_up(stored: Stored) -> bool:
    """S11: held is the sum of what unsettled dispatches hold, charged the sum of what was charged."""
    money = [attempt.row.money for attempt in stored.attempts if attempt.row is not None]
    return stored.held == money.count(Money.HELD) and stored.charged == money.count(Money.SPENT)


def doubt_keeps_its_hold(stored: Stored) -> bool:
    """A hold lives as long as the doubt, unless evidence proves that nothing was bought."""
    row = stored.row
    if row.phase not in DOUBTED or row.dispatch is None:
        return True
    kept = stored.attempts[row.dispatch].row
    return kept is None or RANK[kept.outcome] == PROVEN or kept.money is Money.HELD


STATES: tuple[Callable[[Stored], bool], ...] = (
    one_post_per_dispatch,
    posts_are_authorised,
    proofs_are_true,
    jobs_are_paid_for_knowingly,
    nothing_is_stranded,
    an_open_dispatch_is_not_set_aside,
    cancelled_means_unsent,
    a_job_has_one_owner,
    the_allowance_adds_up,
    doubt_keeps_its_hold,
)


def only_a_mark_precedes_a_post(before: World, move: Move) -> bool:
    """S1: when the first byte leaves, the mark is in the store, or a failover took it since."""
    if move.posted is None:
        return True
    attempt = before.attempts[move.posted]
    return attempt.row is not None or attempt.is_lost


def doubt_leads_to_uncertain(before: World, move: Move) -> bool:
    """S3: a lease that ends in dispatching leads only to uncertain."""
    left = before.row.phase is Phase.DISPATCHING and move.world.row.phase is not Phase.DISPATCHING
    return not (move.swept and left) or move.world.row.phase is Phase.UNCERTAIN


def only_an_ended_lease_is_doubt(before: World, move: Move) -> bool:
    """Nobody sweeps a dispatch whose sender still holds its lease."""
    if not move.swept or move.saved is None or not move.saved.applied or before.lane is None:
        return True
    return not before.lane.is_leased or not any(
        worker.holds and worker.dispatch == before.row.dispatch and worker.at in (At.MARKED, At.REPLIED)
        for worker in before.workers
    )


def the_first_id_stays(before: World, move: Move) -> bool:
    """S4: remote_job_id is written once."""
    return before.row.job is None or move.world.row.job == before.row.job


def final_states_stay(before: World, move: Move) -> bool:
    """S6: nothing replaces a final render state."""
    return before.row.render_state not in FINAL_RENDER_STATES or move.world.row.render_state is before.row.render_state


def only_its_own_job_tells(before: World, move: Move) -> bool:
    """A render's state comes from a look at the remote job that the operation owns."""
    return before.row.render_state is move.world.row.render_state or move.named == before.row.job


def every_write_is_one_revision(before: World, move: Move) -> bool:
    """S7: revisions have no gap, and no write goes without one. A failover takes whole revisions; time writes none."""
    if move.cost == "failovers":
        return True
    if move.world.attempts is before.attempts and move.world.row is before.row:
        return move.saved is None or move.saved.revisions == move.saved.applied
    rows = [attempt.row for attempt in move.world.attempts[: len(before.attempts)]]
    changed = (_undated(before), [attempt.row for attempt in before.attempts]) != (_undated(move.world), rows)
    if move.saved is None:
        return not changed
    return move.saved.revisions == 1 if changed or move.saved.applied else move.saved.revisions <= 1


def _undated(world: World) -> object:
    """The row but for what time alone changes."""
    return world.row[:4], world.row[5:]


def nobody_stale_writes(_before: World, move: Move) -> bool:
    """A mark, a decision or a look that applied was decided on the row as it stood."""
    return move.saved is None or not move.saved.applied or move.saved.fresh


def outcomes_only_rise(before: World, move: Move) -> bool:
    """Later evidence never weakens earlier evidence."""
    return move.world.attempts is before.attempts or all(
        old.row is None or new.is_lost or (new.row is not None and RANK[new.row.outcome] >= RANK[old.row.outcome])
        for old, new in zip(before.attempts, move.world.attempts, strict=False)
    )


def a_paid_id_is_kept(before: World, move: Move) -> bool:
    """Whoever saved an id and lived on leaves it in the evidence and on the list of jobs; where its dispatch was open, it concludes."""
    if move.ended is None or move.named is None or move.named == RIVAL:
        return True
    kept = move.world.attempts[move.ended]
    if kept.row is None or kept.row.job is None or kept.owner is Owner.NOBODY:
        return False
    waited = before.row.dispatch == move.ended and before.row.phase in OPEN_PHASES and kept.owner is not Owner.RIVALS
    return not waited or move.world.row.job == move.ended


def what_is_spooled_is_kept(before: World, move: Move) -> bool:
    """A line leaves the disk only when what it says is in the store."""
    if move.world.spool is before.spool:
        return True
    gone = [line for line in before.spool if line not in move.world.spool]
    return not gone or move.ended in [line.dispatch for line in gone]


MOVES: tuple[Callable[[World, Move], bool], ...] = (
    only_a_mark_precedes_a_post,
    doubt_leads_to_uncertain,
    only_an_ended_lease_is_doubt,
    the_first_id_stays,
    final_states_stay,
    only_its_own_job_tells,
    every_write_is_one_revision,
    nobody_stale_writes,
    outcomes_only_rise,
    a_paid_id_is_kept,
    what_is_spooled_is_kept,
)


ALL = tuple(promise.__name__ for promise in (*MOVES, *STATES))


@dataclass(frozen=True, slots=True)
class Judge:
    """Watches the named promises."""

    of_moves: tuple[Callable[[World, Move], bool], ...]
    of_worlds: tuple[Callable[[Stored], bool], ...]
    judged: dict[Stored, str | None] = field(default_factory=dict)

    @classmethod
    def watching(cls, names: Collection[str]) -> "Judge":
        """A judge of some promises only, so that the story of each can be told."""
        return cls(
            tuple(promise for promise in MOVES if promise.__name__ in names),
            tuple(promise for promise in STATES if promise.__name__ in names),
        )

    def broken_by(self, before: World, move: Move) -> str | None:
        """The first promise that this move breaks. One that writes, sends and saves nothing breaks none."""
        after = move.world
        if move.saved is None and move.posted is None and move.ended is None and not move.swept:
            same = after.row is before.row and after.attempts is before.attempts
            if same and after.spool is before.spool:
                return None
        return next((promise.__name__ for promise in self.of_moves if not promise(before, move)), None)

    def broken_in(self, world: World) -> str | None:
        """The first promise that does not hold in this world."""
        stored = Stored(world.row, world.lane, world.attempts, world.held, world.charged)
        if stored not in self.judged:
            self.judged[stored] = next((promise.__name__ for promise in self.of_worlds if not promise(stored)), None)
        return self.judged[stored]
