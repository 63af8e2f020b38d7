"""Decisions: guarded by the revision they read, and a dispatch's outcome changes only where the decision itself applies."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId, RenderState
from coatcheck.core.steps import DecideStep
from coatcheck.store.door import Status
from store.audited import audited
from store.ground import Ground, look

ACTOR, REASON = "ada", "because"


def decided(ground: Ground, operation_id: OperationId, event: ev.Event) -> DecideStep:
    step = ground.step(operation_id, event)
    assert isinstance(step, DecideStep)
    return step


def test_a_batch_decides_what_it_read_and_reports_the_rest(ground: Ground) -> None:
    cancelled, moved, swept = ground.enqueue_many(3)
    ground.mark(swept)
    steps = [
        decided(ground, cancelled, ev.Cancel(actor=ACTOR, reason=REASON)),
        decided(ground, moved, ev.Cancel(actor=ACTOR, reason=REASON)),
        decided(ground, swept, ev.LeaseEnded()),
    ]
    ground.mark(moved)
    assert [saved.status for saved in ground.save(*steps)] == [Status.APPLIED, Status.STALE, Status.APPLIED]
    assert [ground.operation(each).phase for each in (cancelled, moved, swept)] == [
        "cancelled",
        "dispatching",
        "uncertain",
    ]
    assert ground.one("dispatches", moved, "outcome") == {"outcome": "open"}


def test_the_end_of_a_lease_is_doubt_in_phase_outcome_and_lane(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.mark(operation_id)
    quiescent_at = ground.one("dispatches", operation_id, "quiescent_at")
    assert ground.happen(operation_id, ev.LeaseEnded()).applied
    assert ground.operation(operation_id).phase == "uncertain"
    assert ground.one("dispatches", operation_id, "outcome", "cause", "ended_at", "settled_at") == {
        "outcome": "uncertain",
        "cause": "lease_ended",
        "ended_at": None,
        "settled_at": None,
    }
    assert ground.one("dispatches", operation_id, "quiescent_at") == quiescent_at
    assert ground.one("outbox", operation_id, "action", "park_reason") == {
        "action": "reconcile",
        "park_reason": "uncertain",
    }


def test_a_sweep_that_comes_after_the_reply_changes_nothing(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    sweep = decided(ground, operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId("j")))
    assert ground.save(sweep)[0].status is Status.STALE
    assert ground.operation(operation_id).phase == "accepted"
    assert ground.one("dispatches", operation_id, "outcome") == {"outcome": "accepted"}


def test_a_sweep_never_lowers_what_the_evidence_already_proved(ground: Ground) -> None:
    """The reply was kept as evidence while a cancel was recorded; the sweep comes before it is judged again."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    reply = ground.step(operation_id, ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None))
    ground.happen(operation_id, ev.Cancel(actor=ACTOR, reason=REASON))
    assert ground.save(reply)[0].status is Status.EVIDENCE
    ground.happen(operation_id, ev.LeaseEnded())
    assert ground.operation(operation_id).phase == "uncertain"
    assert ground.one("dispatches", operation_id, "outcome") == {"outcome": "throttled"}


def closed_early(ground: Ground, operation_id: OperationId) -> ev.Event:
    ground.sql(
        "update coatcheck.operations set dispatch_by_at = now() - interval '1 s' where operation_id = %s", operation_id
    )
    return ev.DeadlinePassed()


@pytest.mark.parametrize(
    "why",
    [lambda _ground, _operation_id: ev.Cancel(actor=ACTOR, reason=REASON), closed_early],
    ids=["cancel", "deadline"],
)
def test_what_was_never_sent_is_cancelled_and_its_lane_is_gone(
    ground: Ground, why: Callable[[Ground, OperationId], ev.Event]
) -> None:
    operation_id = ground.enqueue("k")
    assert ground.happen(operation_id, why(ground, operation_id)).applied
    assert ground.operation(operation_id).phase == "cancelled"
    assert ground.all("outbox", operation_id) == []
    last = max(ground.all("history", operation_id), key=lambda row: row["revision"])
    assert (last["from_phase"], last["to_phase"]) == ("prepared", "cancelled")
    assert last["actor"] in ("ada", "sweep")


def test_a_cancel_that_comes_too_late_is_a_wish_and_the_first_one_counts(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.mark(operation_id)
    lane = ground.one("outbox", operation_id)
    assert ground.happen(operation_id, ev.Cancel(actor=ACTOR, reason=REASON)).applied
    wished_at = ground.operation(operation_id).cancel_requested_at
    ground.happen(operation_id, ev.Cancel(actor=ACTOR, reason=REASON))
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.cancel_requested_at) == ("dispatching", wished_at)
    assert wished_at is not None
    assert ground.one("outbox", operation_id) == lane


def test_a_new_authorisation_clears_the_withdrawal_and_names_who_gave_it(ground: Ground) -> None:
    operation_id = ground.enqueue("k", dispatch_by_at="2999-01-01T00:00:00Z")
    ground.mark(operation_id)
    ground.happen(operation_id, ev.Cancel(actor=ACTOR, reason=REASON))
    ground.happen(operation_id, ev.LeaseEnded())
    assert ground.happen(operation_id, ev.Redispatch(actor=ACTOR, reason=REASON, quiescent_at=None)).applied
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.authorisation, operation.authorised_by) == ("prepared", 2, "ada")
    assert (operation.cancel_requested_at, operation.dispatch_by_at) == (None, None)
    ground.mark(operation_id)
    rows = [
        (row["number"], row["authorisation"], row["authorised_by"]) for row in ground.all("dispatches", operation_id)
    ]
    assert sorted(rows)[1] == (2, 2, "ada")


def test_missing_and_stalled_are_parked_and_looked_at_again_when_a_person_asks(ground: Ground) -> None:
    events: dict[str, ev.Event] = {"missing": ev.NotFound(grace_s=0), "stalled": ev.Stalled()}
    for operation_id, (park, event) in zip(ground.enqueue_many(2), events.items(), strict=True):
        job = ground.accept(operation_id)
        assert ground.happen(operation_id, event).applied
        assert ground.one("outbox", operation_id, "park_reason") == {"park_reason": park}
        before = ground.operation(operation_id).observe_by_at
        assert ground.happen(operation_id, ev.Reobserve(actor=ACTOR, reason=REASON, observe_for_s=999_999)).applied
        after = ground.operation(operation_id).observe_by_at
        assert before is not None
        assert after is not None
        assert after > before
        assert ground.one("outbox", operation_id, "park_reason", "action") == {"park_reason": None, "action": "observe"}
        assert ground.happen(operation_id, look(job, RenderState.RENDERING)).applied


def test_a_write_off_closes_every_lane_and_keeps_what_is_known(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    job = ground.accept(operation_id)
    ground.happen(operation_id, ev.NotFound(grace_s=0))
    assert ground.happen(operation_id, ev.WriteOff(actor=ACTOR, reason=REASON)).applied
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.render_state, operation.remote_job_id) == ("abandoned", "missing", job)
    assert ground.all("outbox", operation_id) == []


def test_a_decision_about_an_operation_that_is_not_there_is_stale(ground: Ground) -> None:
    step = decided(ground, ground.enqueue("k"), ev.Cancel(actor=ACTOR, reason=REASON))
    unknown = OperationId(ground.seams.ids.uuid7())
    assert ground.save(replace(step, operation_id=unknown))[0].status is Status.STALE


def test_an_orphan_of_an_earlier_dispatch_is_adopted_with_its_own_money(ground: Ground) -> None:
    """The job is the first POST's, so the service's figure settles that one; what the second bought, nobody has."""
    operation_id = ground.enqueue("k", estimate="5")
    first = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Redispatch(actor=ACTOR, reason=REASON, quiescent_at=None))
    second = ground.mark(operation_id)
    ground.happen(operation_id, ev.Accepted(dispatch_id=first, remote_job_id=RemoteJobId("late")))
    ground.happen(operation_id, ev.LeaseEnded())
    assert ground.happen(operation_id, ev.Adopt(actor=ACTOR, reason=REASON, remote_job_id=RemoteJobId("late"))).applied
    assert ground.operation(operation_id).dispatch_id == first
    assert ground.one("remote_jobs", operation_id, "role", "dispatch_id") == {"role": "owner", "dispatch_id": first}
    assert _money(ground, operation_id) == {first: ("accepted", None, None), second: ("uncertain", 5, "assumed")}
    ground.happen(operation_id, look(RemoteJobId("late"), RenderState.FAILED, charged=3))
    assert _money(ground, operation_id) == {first: ("accepted", 3, "service"), second: ("uncertain", 5, "assumed")}
    assert audited(ground.database) == []


def _money(ground: Ground, operation_id: OperationId) -> dict[object, tuple[object, ...]]:
    rows = ground.all("dispatches", operation_id)
    return {row["dispatch_id"]: (row["outcome"], row["charged"], row["basis"]) for row in rows}
