"""Broken variants: each takes one habit, guard or rule away. A promise that survives all of them would promise nothing."""

from collections.abc import Callable
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
from model.moves import Habits
from model.store import Guards
from model.table import Asked, asked, remembered
from model.world import Budget

SOUND = Habits(table=remembered(asked))
ACCIDENTS = Budget(crashes=1, lease_ends=1, lost_answers=1, decisions=0, dispatches=2)
DECISIONS = Budget(crashes=0, lease_ends=1, lost_answers=0, decisions=1, dispatches=2)
SECOND_THOUGHTS = DECISIONS._replace(decisions=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is broken, how, and which promises fall."""

    name: str
    habits: Habits
    falls: tuple[str, ...]
    budget: Budget = ACCIDENTS


def with_rule(phase: Phase, kind: Kind, change: Callable[[Rule], Rule]) -> Asked:
    """The real table with other rows for one pair."""
    rules = [change(rule) if (rule.phase, rule.kind) == (phase, kind) else rule for rule in machine.RULES]
    pairs = {
        pair: tuple(rule for rule in rules if (rule.phase, rule.kind) == pair)
        for pair in {(rule.phase, rule.kind) for rule in rules}
    }

    def mutated(row: Any, event: Any) -> Any:
        with mock.patch.object(machine, "_BY_PAIR", pairs):
            return asked(row, event)

    return remembered(mutated)


def _rescued(at: do.Setting, event: Any) -> DecideStep:
    """What time-based rescuers do: give the message back to be sent again."""
    return replace(do.doubt(at, event), outcome=None, lanes=(Aim(lane=COURSE, action=Action.DISPATCH),))


def _forgotten(at: do.Setting, event: Any) -> DecideStep:
    return replace(do.doubt(at, event), lanes=(DropAll(),))


def _unauthorised(at: do.Setting, event: Any) -> DecideStep:
    return replace(do.redispatch(at, event), authorises=False)


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
        falls=(
            "doubt_leads_to_uncertain",
            "posts_are_authorised",
            "jobs_are_paid_for_knowingly",
        ),
    ),
    Variant(
        name="doubt drops the lane",
        habits=SOUND._replace(
            table=with_rule(Phase.DISPATCHING, Kind.LEASE_ENDED, lambda rule: replace(rule, do=_forgotten))
        ),
        falls=("nothing_is_stranded",),
    ),
    Variant(
        name="a lost reply is answered by a second POST",
        habits=SOUND._replace(sends_once=False),
        falls=("one_post_per_dispatch",),
    ),
    Variant(
        name="a POST without a mark",
        habits=SOUND._replace(posts_after_the_mark=False),
        falls=("only_a_mark_precedes_a_post",),
    ),
    Variant(
        name="a POST although nobody saw the mark's commit",
        habits=SOUND._replace(posts_only_on_a_seen_commit=False),
        falls=("only_a_mark_precedes_a_post",),
    ),
    Variant(
        name="a decision to send again before the quiet",
        habits=SOUND._replace(waits_for_quiescence=False),
        falls=("proofs_are_true",),
        budget=DECISIONS,
    ),
    Variant(
        name="a first byte after the send window",
        habits=SOUND._replace(keeps_the_send_window=False),
        falls=("proofs_are_true",),
        budget=DECISIONS,
    ),
    Variant(
        name="a mark that does not name the revision",
        habits=guarded(mark_names_revision=False),
        falls=("nobody_stale_writes",),
    ),
    Variant(
        name="a mark without any guard",
        habits=guarded(mark_names_revision=False, mark_needs_prepared=False),
        falls=(
            "nobody_stale_writes",
            "posts_are_authorised",
        ),
    ),
    Variant(
        name="a conclusion guarded by the revision",
        habits=guarded(conclusion_names_dispatch=False, evidence_is_written_always=False)._replace(
            asks_again_when_stale=False
        ),
        falls=("a_paid_id_is_kept",),
    ),
    Variant(
        name="a conclusion guarded by the revision, evidence kept",
        habits=guarded(conclusion_names_dispatch=False)._replace(asks_again_when_stale=False),
        falls=("a_paid_id_is_kept",),
    ),
    Variant(
        name="a decision that does not name the revision",
        habits=guarded(decision_names_revision=False),
        falls=("nobody_stale_writes",),
    ),
    Variant(
        name="a look that names neither revision nor id",
        habits=guarded(look_names_revision=False),
        falls=(
            "nobody_stale_writes",
            "final_states_stay",
        ),
    ),
    Variant(
        name="later evidence that weakens earlier evidence",
        habits=guarded(outcome_only_rises=False),
        falls=("outcomes_only_rise",),
        budget=DECISIONS,
    ),
    Variant(
        name="evidence without a revision",
        habits=guarded(evidence_is_a_revision=False),
        falls=("every_write_is_one_revision",),
        budget=DECISIONS,
    ),
    Variant(
        name="a cancel that closes what may be on its way",
        habits=SOUND._replace(
            table=with_rule(
                Phase.DISPATCHING, Kind.CANCEL, lambda rule: replace(rule, to=Phase.CANCELLED, do=do.close_unsent)
            )
        ),
        falls=("cancelled_means_unsent",),
        budget=DECISIONS,
    ),
    Variant(
        name="a redispatch that authorises nothing",
        habits=SOUND._replace(
            table=with_rule(Phase.UNCERTAIN, Kind.REDISPATCH, lambda rule: replace(rule, do=_unauthorised))
        ),
        falls=("posts_are_authorised",),
        budget=DECISIONS,
    ),
    Variant(
        name="a later id in place of the first",
        habits=guarded(conclusion_names_phase=False, first_id_stays=False)._replace(
            table=with_rule(
                Phase.ACCEPTED, Kind.ACCEPTED, lambda rule: replace(rule, to=Phase.ACCEPTED, do=do.conclude)
            )
        ),
        falls=("the_first_id_stays",),
        budget=SECOND_THOUGHTS,
    ),
)
