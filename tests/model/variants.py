"""Broken variants: each takes one habit, guard or rule away. A promise that survives all of them would promise nothing.

Each names the promises that fall, and how many steps the shortest story takes that breaks each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from coatcheck.core import consequences as do
from coatcheck.core import machine
from coatcheck.core.actions import COURSE, Action, Aim, DropAll
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.machine import Rule
from coatcheck.core.operation import Phase
from coatcheck.core.steps import DecideStep
from model.move import Habits
from model.store import Guards
from model.table import About, Answer, Asked, asked, remembered
from model.world import Bounds, Row

SOUND = Habits(table=remembered(asked))
ACCIDENTS = Bounds(crashes=1, lease_ends=1, lost_answers=1)
DECISIONS = Bounds(lease_ends=1, decisions=1)
SECOND_THOUGHTS = Bounds(lease_ends=1, spoolings=1, decisions=2, workers=1)
STRAYS = Bounds(lease_ends=1, strays=1)
SPOOLS = Bounds(crashes=1, lease_ends=1, spoolings=1)
FAILOVERS = Bounds(lease_ends=1, failovers=1)
APART = Bounds(lease_ends=1, reads_apart=True)
PARKING = Bounds(crashes=1, lease_ends=2, lease_limit=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is broken, how, and which promises fall: each after so many steps, and no sooner."""

    name: str
    habits: Habits
    falls: Mapping[str, int]
    bounds: Bounds = ACCIDENTS


def with_rule(phase: Phase, kind: Kind, change: Callable[[Rule], Rule | None]) -> Asked:
    """The real table with other rows for one pair, or without some of them."""
    rules = [
        changed
        for rule in machine.RULES
        if (changed := change(rule) if (rule.phase, rule.kind) == (phase, kind) else rule) is not None
    ]
    pairs = {
        pair: tuple(rule for rule in rules if (rule.phase, rule.kind) == pair)
        for pair in {(rule.phase, rule.kind) for rule in rules}
    }

    def mutated(row: Row, kind: Kind, about: About = About(), /) -> Answer:  # noqa: B008 - a value like any other
        with mock.patch.object(machine, "_BY_PAIR", pairs):
            return asked(row, kind, about)

    return remembered(mutated)


def _rescued(at: do.Setting, event: Any) -> DecideStep:
    """What time-based rescuers do: give the message back to be sent again."""
    return replace(do.doubt(at, event), outcome=None, lanes=(Aim(lane=COURSE, action=Action.DISPATCH),))


def _forgotten(at: do.Setting, event: Any) -> DecideStep:
    return replace(do.doubt(at, event), lanes=(DropAll(),))


def _unauthorised(at: do.Setting, event: Any) -> DecideStep:
    return replace(do.redispatch(at, event), authorises=False)


def _credulous(rule: Rule) -> Rule | None:
    return None if rule.name == "foreign_snapshot" else rule


def guarded(**changes: bool) -> Habits:
    return SOUND._replace(guards=Guards(**changes))


VARIANTS = (
    Variant(
        name="the end of a lease makes a dispatch prepared again",
        habits=SOUND._replace(
            table=with_rule(
                Phase.DISPATCHING, Kind.LEASE_ENDED, lambda rule: replace(rule, to=Phase.PREPARED, do=_rescued)
            )
        ),
        falls={"doubt_leads_to_uncertain": 5, "posts_are_authorised": 9, "jobs_are_paid_for_knowingly": 9},
    ),
    Variant(
        name="doubt drops the lane",
        habits=SOUND._replace(
            table=with_rule(Phase.DISPATCHING, Kind.LEASE_ENDED, lambda rule: replace(rule, do=_forgotten))
        ),
        falls={"nothing_is_stranded": 5},
    ),
    Variant(
        name="a lost reply is answered by a second POST",
        habits=SOUND._replace(sends_once=False),
        falls={"one_post_per_dispatch": 4},
    ),
    Variant(
        name="a POST without a mark",
        habits=SOUND._replace(posts_after_the_mark=False),
        falls={"only_a_mark_precedes_a_post": 3},
    ),
    Variant(
        name="a POST although nobody saw the mark's commit",
        habits=SOUND._replace(posts_only_on_a_seen_commit=False),
        falls={"only_a_mark_precedes_a_post": 4},
    ),
    Variant(
        name="a decision to send again before the quiet",
        habits=SOUND._replace(waits_for_quiescence=False),
        falls={"proofs_are_true": 8},
        bounds=DECISIONS,
    ),
    Variant(
        name="a first byte after the send window",
        habits=SOUND._replace(keeps_the_send_window=False),
        falls={"proofs_are_true": 9},
        bounds=DECISIONS,
    ),
    Variant(
        name="a mark that does not name the revision",
        habits=guarded(mark_names_revision=False),
        falls={"nobody_stale_writes": 7},
    ),
    Variant(
        name="a mark without any guard",
        habits=guarded(mark_names_revision=False, mark_needs_prepared=False),
        falls={"nobody_stale_writes": 5, "posts_are_authorised": 7},
    ),
    Variant(
        name="a conclusion guarded by the revision",
        habits=guarded(conclusion_names_dispatch=False, evidence_is_written_always=False)._replace(
            asks_again_when_stale=False
        ),
        falls={"a_paid_id_is_kept": 7},
    ),
    Variant(
        name="a conclusion guarded by the revision, evidence kept",
        habits=guarded(conclusion_names_dispatch=False)._replace(asks_again_when_stale=False),
        falls={"a_paid_id_is_kept": 7},
    ),
    Variant(
        name="a decision that does not name the revision",
        habits=guarded(decision_names_revision=False),
        falls={"nobody_stale_writes": 8},
    ),
    Variant(
        name="a look that names neither revision nor id",
        habits=guarded(look_names_revision=False),
        falls={"nobody_stale_writes": 8, "final_states_stay": 11},
    ),
    Variant(
        name="later evidence that weakens earlier evidence",
        habits=guarded(outcome_only_rises=False),
        falls={"outcomes_only_rise": 9},
        bounds=DECISIONS,
    ),
    Variant(
        name="evidence without a revision",
        habits=guarded(evidence_is_a_revision=False),
        falls={"every_write_is_one_revision": 6},
        bounds=DECISIONS,
    ),
    Variant(
        name="a cancel that closes what may be on its way",
        habits=SOUND._replace(
            table=with_rule(
                Phase.DISPATCHING, Kind.CANCEL, lambda rule: replace(rule, to=Phase.CANCELLED, do=do.close_unsent)
            )
        ),
        falls={"cancelled_means_unsent": 4},
        bounds=DECISIONS,
    ),
    Variant(
        name="a redispatch that authorises nothing",
        habits=SOUND._replace(
            table=with_rule(Phase.UNCERTAIN, Kind.REDISPATCH, lambda rule: replace(rule, do=_unauthorised))
        ),
        falls={"posts_are_authorised": 10},
        bounds=DECISIONS,
    ),
    Variant(
        name="a later id in place of the first",
        habits=guarded(conclusion_names_phase=False, first_id_stays=False)._replace(
            table=with_rule(
                Phase.ACCEPTED, Kind.ACCEPTED, lambda rule: replace(rule, to=Phase.ACCEPTED, do=do.conclude)
            )
        ),
        falls={"the_first_id_stays": 18},
        bounds=SECOND_THOUGHTS,
    ),
    Variant(
        name="a mark that holds nothing",
        habits=guarded(mark_holds_its_price=False),
        falls={"the_allowance_adds_up": 2},
    ),
    Variant(
        name="a hold released on doubt",
        habits=guarded(doubt_keeps_its_hold=False),
        falls={"doubt_keeps_its_hold": 4},
    ),
    Variant(
        name="a sweep by a worker that lost its lease",
        habits=SOUND._replace(sweeps_only_what_it_holds=False),
        falls={"only_an_ended_lease_is_doubt": 7},
        bounds=APART,
    ),
    Variant(
        name="a look at another job",
        habits=guarded(look_names_job=False)._replace(table=with_rule(Phase.ACCEPTED, Kind.SNAPSHOT, _credulous)),
        falls={"only_its_own_job_tells": 7},
        bounds=STRAYS,
    ),
    Variant(
        name="another operation's job, taken all the same",
        habits=guarded(jobs_have_one_owner=False),
        falls={"a_job_has_one_owner": 4},
        bounds=STRAYS,
    ),
    Variant(
        name="a late id that is written down and listed nowhere",
        habits=guarded(orphans_are_listed=False),
        falls={"a_paid_id_is_kept": 10},
        bounds=DECISIONS,
    ),
    Variant(
        name="evidence dropped when it is late",
        habits=guarded(evidence_is_written_always=False),
        falls={"a_paid_id_is_kept": 10},
        bounds=DECISIONS,
    ),
    Variant(
        name="a spool whose lines go when they are read",
        habits=SOUND._replace(spool_is_kept_until_saved=False),
        falls={"what_is_spooled_is_kept": 5},
        bounds=SPOOLS,
    ),
    Variant(
        name="a mark lost with a failover and written again as if it were alone",
        habits=guarded(doubles_are_displaced=False),
        falls={"posts_are_authorised": 8},
        bounds=FAILOVERS,
    ),
    Variant(
        name="an open dispatch parked for its leases",
        habits=SOUND._replace(doubts_before_parking=False),
        falls={"an_open_dispatch_is_not_set_aside": 5},
        bounds=PARKING,
    ),
)
