"""What a dispatch costs, by everything that may become of it; and whatever is said again costs nothing again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, RemoteJobId, RenderState
from coatcheck.core.steps import Step
from coatcheck.store.door import Status
from store.ground import ACCOUNT, Ground, look
from store.replies import JOB, accepted, replies
from store.spending import BY, LONG_AGO, limit, marks, purse

OWED = ev.Waited(reason="accounting")
FREE, HELD, ASSUMED = (0, "assumed"), (None, None), (5, "assumed")
ENDS = ("accepted", "submission_failed", "rejected", "throttled", "not_sent", "uncertain")


class Life:
    """One operation that holds 5, and what happens to it in words; `late` is said of its first dispatch."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.operation_id = ground.enqueue("k", estimate="5")
        self.dispatches: list[DispatchId] = []

    def live(self, story: str) -> None:
        """Everything in turn, each of it saved twice."""
        for word in story.split(", "):
            step = self.ground.step(self.operation_id, self.event(word))
            marked = self.ground.operation(self.operation_id)
            self.ground.save(step, marked=marked)
            self.again(step)

    def again(self, step: Step) -> None:
        """The same save once more changes no amount."""
        before = self.money(), purse(self.ground)
        self.ground.save(step)
        assert (self.money(), purse(self.ground)) == before

    def money(self) -> list[dict[str, Any]]:
        query = "select held, charged, basis, unit, settled_at, outcome from coatcheck.dispatches where operation_id = %s order by number"
        return self.ground.sql(query, self.operation_id)

    def amounts(self) -> list[tuple[object, object]]:
        return [(row["charged"], row["basis"]) for row in self.money()]

    def event(self, word: str) -> ev.Event:
        if word == "mark":
            self.dispatches.append(DispatchId(self.ground.seams.ids.uuid7()))
            return ev.Mark(dispatch_id=self.dispatches[-1], account=ACCOUNT)
        if word in ENDS:
            return replies(self.dispatches[-1])[word]
        if word.startswith("late "):
            return replies(self.dispatches[0])[word.removeprefix("late ")]
        events: dict[str, Callable[[], ev.Event]] = {
            "second id": lambda: accepted(self.dispatches[0], RemoteJobId("job-2")),
            "sweep": ev.LeaseEnded,
            "lost": lambda: ev.NotFound(grace_s=0),
            "cancel": lambda: ev.Cancel(**BY),
            "prove absent": lambda: ev.ProveAbsent(**BY, quiescent_at=LONG_AGO),
            "redispatch": lambda: ev.Redispatch(**BY, quiescent_at=LONG_AGO),
            "write off": lambda: ev.WriteOff(actor="ada", reason="because"),
            "write off released": lambda: ev.WriteOff(actor="ada", reason="because", released=True),
            "adopt": lambda: ev.Adopt(actor="ada", reason="because", remote_job_id=JOB),
            "final": lambda: look(JOB, RenderState.FAILED),
            "final 3": lambda: figure(3),
            "final 9": lambda: figure(9),
            "final 3 tokens": lambda: figure(3, unit="tokens"),
            "refund 1 of 3": lambda: figure(3, refunded=1),
            "refund 9 of 3": lambda: figure(3, refunded=9),
        }
        return events[word]()


def figure(charged: int, *, refunded: int = 0, unit: str | None = None) -> ev.Snapshot:
    told = ev.Credits(charged=Decimal(charged), refunded=Decimal(refunded), unit=unit)
    return replace(look(JOB, RenderState.FAILED), credits=told, waited=OWED)


STORIES: Sequence[tuple[str, str, Sequence[tuple[int | None, str | None]]]] = (
    # created nothing: it costs nothing
    ("mark, not_sent", "prepared", [FREE]),
    ("mark, throttled", "prepared", [FREE]),
    ("mark, rejected", "rejected", [FREE]),
    ("mark, sweep, prove absent", "prepared", [FREE]),
    ("mark, sweep, late not_sent", "prepared", [FREE]),
    ("mark, throttled, mark", "dispatching", [FREE, HELD]),
    # in doubt or under way: it is held
    ("mark", "dispatching", [HELD]),
    ("mark, uncertain", "uncertain", [HELD]),
    ("mark, sweep, late uncertain", "uncertain", [HELD]),
    ("mark, accepted", "accepted", [HELD]),
    ("mark, submission_failed", "submission_failed", [HELD]),
    ("mark, sweep, adopt", "accepted", [HELD]),
    ("mark, accepted, lost", "accepted", [HELD]),
    # final: the service's figure, else what was held
    ("mark, accepted, final", "accepted", [ASSUMED]),
    ("mark, accepted, final 3", "accepted", [(3, "service")]),
    ("mark, accepted, final 9", "accepted", [(9, "service")]),
    ("mark, sweep, adopt, final 3", "accepted", [(3, "service")]),
    ("mark, accepted, final 3 tokens", "accepted", [ASSUMED]),
    ("mark, accepted, final, final 3", "accepted", [(3, "service")]),
    ("mark, accepted, final, refund 1 of 3", "accepted", [(2, "service")]),
    ("mark, accepted, final, refund 9 of 3", "accepted", [(0, "service")]),
    ("mark, accepted, final 3 tokens, final 3", "accepted", [(3, "service")]),
    # decided by a person: what is held, unless the person knows better
    ("mark, sweep, redispatch", "prepared", [ASSUMED]),
    ("mark, sweep, redispatch, mark", "dispatching", [ASSUMED, HELD]),
    ("mark, rejected, redispatch", "prepared", [FREE]),
    ("mark, sweep, write off", "abandoned", [ASSUMED]),
    ("mark, sweep, write off released", "abandoned", [FREE]),
    ("mark, accepted, lost, write off", "abandoned", [ASSUMED]),
    ("mark, accepted, lost, write off released", "abandoned", [FREE]),
    # an id that concludes what was settled: it is held again
    ("mark, sweep, prove absent, late accepted", "accepted", [HELD]),
    ("mark, sweep, prove absent, late submission_failed", "submission_failed", [HELD]),
    ("mark, sweep, redispatch, late accepted", "accepted", [HELD]),
    ("mark, throttled, late accepted", "accepted", [HELD]),
    ("mark, sweep, redispatch, late accepted, final 3", "accepted", [(3, "service")]),
    # late evidence that nothing was created, in any phase
    ("mark, sweep, write off, late not_sent", "abandoned", [FREE]),
    ("mark, sweep, redispatch, late throttled", "prepared", [FREE]),
    ("mark, sweep, redispatch, mark, late rejected", "dispatching", [FREE, HELD]),
    ("mark, sweep, redispatch, mark, accepted, late not_sent", "accepted", [FREE, HELD]),
    ("mark, sweep, redispatch, cancel, late not_sent", "cancelled", [FREE]),
    # a paid job that no operation took
    ("mark, sweep, prove absent, mark, late accepted", "dispatching", [ASSUMED, HELD]),
    ("mark, sweep, redispatch, mark, late accepted", "dispatching", [ASSUMED, HELD]),
    ("mark, sweep, prove absent, cancel, late accepted", "cancelled", [ASSUMED]),
    ("mark, sweep, write off, late accepted", "abandoned", [ASSUMED]),
    ("mark, sweep, write off released, late accepted", "abandoned", [ASSUMED]),
    ("mark, rejected, late accepted", "rejected", [ASSUMED]),
    # what is known to have created a job is not free by a later word, and a second job of one dispatch adds nothing
    ("mark, accepted, late not_sent", "accepted", [HELD]),
    ("mark, accepted, final 3, late rejected", "accepted", [(3, "service")]),
    ("mark, accepted, final 3, second id", "accepted", [(3, "service")]),
)


@pytest.mark.parametrize(("story", "phase", "amounts"), STORIES, ids=[story for story, _, _ in STORIES])
def test_everything_that_may_become_of_a_dispatch_has_its_price(
    ground: Ground, story: str, phase: str, amounts: Sequence[tuple[int | None, str | None]]
) -> None:
    life = Life(ground)
    life.live(story)
    assert ground.operation(life.operation_id).phase == phase
    assert life.amounts() == list(amounts)
    held = sum(5 for charged, _ in amounts if charged is None)
    assert purse(ground) == (held, sum(charged or 0 for charged, _ in amounts))


def test_every_correction_is_a_revision(ground: Ground) -> None:
    life = Life(ground)
    life.live("mark, sweep, write off")
    before = ground.operation(life.operation_id).revision
    life.live("late not_sent")
    last = max(ground.all("history", life.operation_id), key=lambda row: row["revision"])
    assert (last["revision"] > before, last["event"], last["to_phase"]) == (True, "late_not_sent", "abandoned")


def test_another_unit_is_an_incident_once_it_is_charged(ground: Ground) -> None:
    life = Life(ground)
    life.live("mark, accepted, final 3 tokens")
    assert ground.one("incidents", life.operation_id, "kind") == {"kind": "unit_differs"}


def test_a_hold_that_is_taken_again_asks_for_no_limit(ground: Ground) -> None:
    life = Life(ground)
    limit(ground, 5)
    life.live("mark, sweep, prove absent")
    (other,) = marks(ground, [ground.enqueue("other", estimate="5")])
    assert other.applied
    life.live("late accepted")
    assert purse(ground) == (10, 0)


def test_a_charge_above_the_limit_is_charged(ground: Ground) -> None:
    life = Life(ground)
    limit(ground, 5)
    life.live("mark, accepted, final 9")
    assert purse(ground) == (0, 9)
    assert limit(ground, 5).left == -4


def test_an_id_that_another_operation_has_leads_back_into_doubt_and_is_held_again(ground: Ground) -> None:
    ground.accept(ground.enqueue("owner", estimate="0"), JOB)
    life = Life(ground)
    life.live("mark, sweep, prove absent, late accepted")
    assert ground.operation(life.operation_id).phase == "uncertain"
    assert life.amounts() == [HELD]
    life.live("redispatch")
    assert life.amounts() == [ASSUMED]


def test_an_adopted_id_takes_again_what_evidence_had_freed(ground: Ground) -> None:
    """The reply said that nothing was created while a cancel was recorded; before it was judged again, the lease ended."""
    life = Life(ground)
    life.live("mark")
    reply = ground.step(life.operation_id, life.event("throttled"))
    ground.happen(life.operation_id, ev.Cancel(**BY))
    assert ground.save(reply)[0].status is Status.EVIDENCE
    assert life.amounts() == [FREE]
    life.live("sweep, adopt")
    assert life.amounts() == [HELD]
    assert purse(ground) == (5, 0)
    life.live("final 3")
    assert life.amounts() == [(3, "service")]


@pytest.mark.breaks("S2: one")
def test_an_id_that_contradicts_a_proof_after_another_mark_is_charged(ground: Ground) -> None:
    life = Life(ground)
    life.live("mark, not_sent, mark, late accepted")
    assert life.amounts() == [ASSUMED, HELD]


def test_a_reply_whose_mark_was_lost_with_a_failover_is_counted(ground: Ground) -> None:
    """The mark's transaction is gone with all that it did, the allowance's hold among it."""
    for reply, amounts in (("accepted", HELD), ("rejected", FREE), ("uncertain", ASSUMED)):
        operation_id = ground.enqueue(reply, estimate="5")
        marked = replace(ground.operation(operation_id), dispatch_count=1)
        dispatch_id = DispatchId(ground.seams.ids.uuid7())
        event = replies(dispatch_id)[reply]
        before = purse(ground)
        ground.save(ground.step(operation_id, event), marked=marked)
        row = ground.one("dispatches", operation_id)
        assert (row["charged"], row["basis"]) == amounts
        assert purse(ground) != before or amounts == FREE
