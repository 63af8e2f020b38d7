"""The end of a POST: its evidence is always written, its conclusion only where dispatch and phase allow it, and no paid id is dropped."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId
from coatcheck.core.steps import ConcludeStep
from coatcheck.store.door import Status
from store.ground import Ground
from store.replies import ENDS, JOB, accepted, replies
from waiting import until


@pytest.mark.parametrize("swept", [False, True], ids=["in time", "after the sweep"])
@pytest.mark.parametrize("outcome", ENDS)
def test_every_reply_concludes_dispatching_and_uncertain(ground: Ground, outcome: str, swept: bool) -> None:
    operation_id = ground.enqueue("k", estimate="2")
    dispatch_id = ground.mark(operation_id)
    if swept:
        ground.happen(operation_id, ev.LeaseEnded())
        assert ground.one("dispatches", operation_id, "outcome") == {"outcome": "uncertain"}
    if swept and outcome == "uncertain":
        step = ground.step(operation_id, replies(dispatch_id)[outcome])
        assert isinstance(step, ConcludeStep)
        assert step.phase is None
        return
    saved = ground.happen(operation_id, replies(dispatch_id)[outcome])
    phase, action, parked = ENDS[outcome]
    operation = ground.operation(operation_id)
    assert (saved.status, operation.phase, operation.revision) == (Status.APPLIED, phase, saved.revision)
    lanes = [(row["action"], row["park_reason"]) for row in ground.all("outbox", operation_id)]
    assert lanes == ([(action, parked)] if action else [])
    dispatch = ground.one("dispatches", operation_id)
    assert (dispatch["outcome"], dispatch["stage"], dispatch["reply"]) == (outcome, "body_received", b"a reply")
    assert (dispatch["charged"] == 0) == (outcome in ("rejected", "throttled", "not_sent"))
    assert dispatch["quiescent_at"] < dispatch["send_by_at"] + (dispatch["quiescent_at"] - dispatch["begun_at"])
    assert dispatch["ended_at"] is not None


def test_an_end_that_is_told_again_later_makes_nobody_wait_longer(database: postgres.Database, ground: Ground) -> None:
    """The first recorded end of the POST says when nothing of it can arrive any more; a replay of it an hour later says nothing new."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    reply = ev.Doubted(dispatch_id=dispatch_id, cause="cut")
    ground.happen(operation_id, reply)
    known = ground.one("dispatches", operation_id, "quiescent_at", "ended_at")
    database.move_time(3600)
    assert ground.happen(operation_id, reply).status is Status.EVIDENCE
    assert ground.one("dispatches", operation_id, "quiescent_at", "ended_at") == known


@pytest.mark.parametrize("outcome", ENDS)
def test_from_prepared_only_a_reply_with_an_id_concludes(ground: Ground, outcome: str) -> None:
    """A 429 was saved and the sweep was late, or a mark was recorded as not sent: the late truth still lands."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.NotSent(dispatch_id=dispatch_id, cause="mark_commit_unknown"))
    saved = ground.happen(operation_id, replies(dispatch_id)[outcome])
    with_id = outcome in ("accepted", "submission_failed")
    assert saved.status is (Status.APPLIED if with_id else Status.EVIDENCE)
    assert ground.operation(operation_id).phase == (outcome if with_id else "prepared")
    dispatch = ground.one("dispatches", operation_id)
    assert dispatch["outcome"] == (outcome if with_id else "not_sent")
    assert (dispatch["settled_at"] is None) == with_id


def test_a_batch_tells_applied_from_evidence(ground: Ground) -> None:
    open_one, closed, unknown_dispatch = ground.enqueue_many(3)
    marks = {each: ground.mark(each) for each in (open_one, closed, unknown_dispatch)}
    ground.happen(closed, ev.Rejected(dispatch_id=marks[closed], status=422))
    steps = [
        ground.step(open_one, accepted(marks[open_one], RemoteJobId("a"))),
        ground.step(closed, accepted(marks[closed], RemoteJobId("b"))),
        ground.step(unknown_dispatch, ev.Doubted(dispatch_id=marks[unknown_dispatch], cause="c")),
    ]
    assert [saved.status for saved in ground.save(*steps)] == [Status.APPLIED, Status.EVIDENCE, Status.APPLIED]
    assert ground.operation(closed).phase == "rejected"
    assert ground.sql("select remote_job_id, role from coatcheck.remote_jobs order by 1") == [
        {"remote_job_id": "a", "role": "owner"},
        {"remote_job_id": "b", "role": "orphan"},
    ]
    assert ground.one("incidents", closed, "kind", "boundary") == {"kind": "late_remote_job", "boundary": "network"}


@pytest.mark.parametrize("withdrawal", ["cancel", "deadline"])
@pytest.mark.parametrize("outcome", ["throttled", "not_sent"])
def test_a_return_to_prepared_and_a_withdrawal_exclude_each_other(
    ground: Ground, outcome: str, withdrawal: str
) -> None:
    """The reply was judged before the cancel was recorded: it is judged again, and the operation is cancelled."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    reply = replies(dispatch_id)[outcome]
    judged_before = ground.step(operation_id, reply)
    if withdrawal == "cancel":
        ground.happen(operation_id, ev.Cancel(actor="p", reason="r"))
    else:
        ground.sql("update coatcheck.operations set dispatch_by_at = now() - interval '1 s'")
    assert ground.save(judged_before)[0].status is Status.EVIDENCE
    assert ground.operation(operation_id).phase == "dispatching"
    assert ground.happen(operation_id, reply).status is Status.APPLIED
    assert ground.operation(operation_id).phase == "cancelled"
    assert ground.all("outbox", operation_id) == []


def test_a_late_429_after_the_sweep_leads_back_to_prepared(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    in_flight = ground.step(operation_id, ev.Throttled(dispatch_id=dispatch_id, retry_after_s=9, delay_s=9))
    ground.happen(operation_id, ev.LeaseEnded())
    assert ground.save(in_flight)[0].status is Status.APPLIED
    assert ground.operation(operation_id).phase == "prepared"
    lane = ground.one("outbox", operation_id, "action", "wait_reason", "parked_at")
    assert lane == {"action": "dispatch", "wait_reason": "throttled", "parked_at": None}


def test_an_outcome_only_rises_and_the_first_id_stays(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, accepted(dispatch_id))
    for reply in (accepted(dispatch_id, RemoteJobId("job-2")), *(replies(dispatch_id)[word] for word in ENDS)):
        assert ground.happen(operation_id, reply).status is Status.EVIDENCE
    assert ground.one("dispatches", operation_id, "outcome", "remote_job_id", "charged") == {
        "outcome": "accepted",
        "remote_job_id": JOB,
        "charged": None,
    }
    assert ground.operation(operation_id).remote_job_id == JOB
    kinds = ground.sql("select kind, count from coatcheck.incidents order by kind")
    assert kinds == [{"kind": "contradicting_reply", "count": 4}, {"kind": "late_remote_job", "count": 1}]
    assert ground.sql("select role from coatcheck.remote_jobs where remote_job_id = 'job-2'") == [{"role": "orphan"}]


def test_every_piece_of_evidence_is_a_revision_with_its_history(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    before = ground.step(operation_id, accepted(dispatch_id))
    ground.happen(operation_id, ev.Rejected(dispatch_id=dispatch_id, status=422))
    saved = ground.save(before)[0]
    assert (saved.status, saved.revision) == (Status.EVIDENCE, 3)
    events = [row["event"] for row in sorted(ground.all("history", operation_id), key=lambda row: row["revision"])]
    assert events == ["generation_requested", "dispatch_marked", "generation_rejected", "reply_kept"]


def test_a_reply_that_cannot_be_stored_fails_alone(ground: Ground) -> None:
    """The caller hears of it, and the operation still concludes without the quotation."""
    operation_id = ground.enqueue("k")
    step = ground.step(operation_id, ev.Doubted(dispatch_id=ground.mark(operation_id), cause="c"))
    assert isinstance(step, ConcludeStep)
    with pytest.raises(psycopg.DataError, match="NUL"):
        ground.save(replace(step, cause="a\0b"))
    assert ground.save(step)[0].applied


# -- whose remote job it is --------------------------------------------------------------------------------------------


def owned(ground: Ground, operation_id: OperationId) -> None:
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.remote_job_id) == ("uncertain", None)
    assert ground.one("outbox", operation_id, "park_reason", "action") == {
        "park_reason": "uncertain",
        "action": "reconcile",
    }
    assert ground.one("incidents", operation_id, "kind", "boundary") == {
        "kind": "remote_id_owned",
        "boundary": "theirs",
    }
    assert ground.one("dispatches", operation_id, "remote_job_id") == {"remote_job_id": JOB}


def test_an_id_that_another_operation_owns_leaves_doubt_and_fails_nobody(ground: Ground) -> None:
    owner, second, neighbour = ground.enqueue_many(3)
    ground.accept(owner, JOB)
    steps = [
        ground.step(second, accepted(ground.mark(second))),
        ground.step(neighbour, accepted(ground.mark(neighbour), RemoteJobId("job-2"))),
    ]
    assert [saved.status for saved in ground.save(*steps)] == [Status.OWNED, Status.APPLIED]
    owned(ground, second)


def test_an_id_that_two_operations_of_one_batch_name_belongs_to_one_of_them(ground: Ground) -> None:
    operation_ids = ground.enqueue_many(2)
    steps = [ground.step(each, accepted(ground.mark(each))) for each in operation_ids]
    statuses = [saved.status for saved in ground.save(*steps)]
    assert sorted(statuses) == [Status.APPLIED, Status.STALE]
    loser = statuses.index(Status.STALE)
    assert ground.one("dispatches", operation_ids[loser], "outcome") == {"outcome": "open"}
    assert ground.save(steps[loser])[0].status is Status.OWNED
    owned(ground, operation_ids[loser])


def test_an_id_that_another_transaction_commits_meanwhile_is_stale_then_owned(
    database: postgres.Database, ground: Ground
) -> None:
    winner, loser = ground.enqueue_many(2)
    steps = [ground.step(each, accepted(ground.mark(each))) for each in (winner, loser)]
    with ThreadPoolExecutor(1) as pool, database.connect() as other:
        with other.transaction():
            other.execute(
                "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) "
                "values ('genace', %s, %s, 'orphan', now())",
                [JOB, winner],
            )
            saving = pool.submit(ground.save, steps[1])
            until(ground.lock_waiters)
        assert saving.result(timeout=20)[0].status is Status.STALE
    assert ground.operation(loser).revision == 1
    assert ground.save(steps[1])[0].status is Status.OWNED
    owned(ground, loser)
    assert ground.save(steps[0])[0].applied


def test_what_is_proven_is_not_concluded_against(ground: Ground) -> None:
    """An id was named, though another operation owns it: no later word makes this dispatch one that was never sent."""
    owner, operation_id = ground.enqueue_many(2)
    ground.accept(owner, JOB)
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, accepted(dispatch_id))
    for outcome in ("not_sent", "throttled", "rejected"):
        assert ground.happen(operation_id, replies(dispatch_id)[outcome]).status is Status.EVIDENCE
    assert ground.operation(operation_id).phase == "uncertain"
    assert ground.one("dispatches", operation_id, "outcome") == {"outcome": "accepted"}


def test_an_orphan_of_the_same_operation_becomes_its_own(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    ground.sql(
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) values ('genace', %s, %s, 'orphan', now())",
        JOB,
        operation_id,
    )
    assert ground.happen(operation_id, accepted(dispatch_id)).applied
    assert ground.one("remote_jobs", operation_id, "role", "dispatch_id") == {
        "role": "owner",
        "dispatch_id": dispatch_id,
    }


@pytest.mark.parametrize("closing", ["cancelled", "abandoned", "rejected"])
def test_an_id_that_arrives_after_the_end_is_an_orphan(ground: Ground, closing: str) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    reply = accepted(dispatch_id)
    match closing:
        case "cancelled":
            ground.happen(operation_id, ev.Cancel(actor="p", reason="r"))
            ground.happen(operation_id, replies(dispatch_id)["throttled"])
        case "abandoned":
            ground.happen(operation_id, ev.LeaseEnded())
            ground.happen(operation_id, ev.WriteOff(actor="p", reason="r"))
        case _:
            ground.happen(operation_id, replies(dispatch_id)["rejected"])
    assert ground.happen(operation_id, reply).status is Status.EVIDENCE
    assert ground.operation(operation_id).phase == closing
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}
    assert ground.one("dispatches", operation_id, "outcome") == {"outcome": "accepted"}
    assert ground.all("outbox", operation_id) == []


def test_an_id_under_a_new_authorisation_still_concludes_what_was_not_dispatched_again(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Redispatch(actor="p", reason="r", quiescent_at=None))
    assert ground.operation(operation_id).authorisation == 2
    assert ground.happen(operation_id, accepted(dispatch_id)).applied
    assert ground.operation(operation_id).phase == "accepted"


def test_an_id_of_a_former_dispatch_is_an_orphan_once_another_is_current(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    former = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    late = ground.step(operation_id, accepted(former))
    ground.happen(operation_id, ev.Redispatch(actor="p", reason="r", quiescent_at=None))
    current = ground.mark(operation_id)
    assert ground.save(late)[0].status is Status.EVIDENCE
    assert (ground.operation(operation_id).dispatch_id, ground.operation(operation_id).phase) == (
        current,
        "dispatching",
    )
    assert ground.one("remote_jobs", operation_id, "role", "dispatch_id") == {"role": "orphan", "dispatch_id": former}


@pytest.mark.parametrize("adopted", [False, True])
def test_a_late_id_that_another_operation_has_is_a_dispute_on_both_sides(ground: Ground, adopted: bool) -> None:
    """Written off, and then its own reply names the job that another operation was given: one of the two is wrong."""
    owner, operation_id = ground.enqueue_many(2)
    late = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    if adopted:
        ground.mark(owner)
        ground.happen(owner, ev.LeaseEnded())
        ground.happen(owner, ev.Adopt(actor="p", reason="r", remote_job_id=JOB))
    else:
        ground.accept(owner, JOB)
    ground.happen(operation_id, ev.WriteOff(actor="p", reason="r"))
    assert ground.happen(operation_id, accepted(late)).status is Status.EVIDENCE
    boundary = "ours" if adopted else "theirs"
    assert ground.one("incidents", operation_id, "kind", "boundary") == {
        "kind": "remote_id_owned",
        "boundary": boundary,
    }
    assert ground.one("incidents", owner, "kind", "boundary") == {"kind": "remote_id_disputed", "boundary": boundary}


def test_two_replies_of_one_batch_may_dispute_one_owners_job(ground: Ground) -> None:
    """The same row twice in a statement is an error of the server's, and it would fail a batch of paid ids."""
    owner, first, second, neighbour = ground.enqueue_many(4)
    ground.accept(owner, JOB)
    steps = [ground.step(each, accepted(ground.mark(each))) for each in (first, second)]
    steps.append(ground.step(neighbour, accepted(ground.mark(neighbour), RemoteJobId("job-2"))))
    assert [saved.status for saved in ground.save(*steps)] == [Status.OWNED, Status.OWNED, Status.APPLIED]
    assert ground.one("incidents", owner, "kind", "count") == {"kind": "remote_id_disputed", "count": 1}
