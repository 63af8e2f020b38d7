"""The end of a POST: its evidence is always written, its conclusion only where dispatch and phase allow it, and no paid id is dropped."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId
from coatcheck.core.steps import ConcludeStep
from coatcheck.store.door import Status
from store.ground import ACCOUNT, Ground
from waiting import until

JOB = RemoteJobId("job-1")


def accepted(dispatch_id: DispatchId, job: RemoteJobId = JOB) -> ev.Accepted:
    return ev.Accepted(dispatch_id=dispatch_id, remote_job_id=job)


def replies(dispatch_id: DispatchId) -> dict[str, ev.Reply]:
    return {
        "accepted": accepted(dispatch_id),
        "submission_failed": ev.FailedWithId(dispatch_id=dispatch_id, remote_job_id=JOB),
        "rejected": ev.Rejected(dispatch_id=dispatch_id, status=422),
        "throttled": ev.Throttled(dispatch_id=dispatch_id, retry_after_s=3, delay_s=3),
        "not_sent": ev.NotSent(dispatch_id=dispatch_id, cause="refused", delay_s=3),
        "uncertain": ev.Doubted(dispatch_id=dispatch_id, cause="no_reply"),
    }


ENDS = {
    "accepted": ("accepted", "observe", None),
    "submission_failed": ("submission_failed", "observe", None),
    "rejected": ("rejected", None, None),
    "throttled": ("prepared", "dispatch", None),
    "not_sent": ("prepared", "dispatch", None),
    "uncertain": ("uncertain", "reconcile", "uncertain"),
}


@pytest.mark.parametrize("swept", [False, True], ids=["in time", "after the sweep"])
@pytest.mark.parametrize("outcome", ENDS)
def test_every_reply_concludes_dispatching_and_uncertain(ground: Ground, outcome: str, swept: bool) -> None:
    operation_id = ground.enqueue("k", estimate="2")
    dispatch_id = ground.mark(operation_id)
    if swept:
        ground.happen(operation_id, ev.LeaseEnded(dispatch_id=dispatch_id))
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
    ground.happen(operation_id, ev.LeaseEnded(dispatch_id=dispatch_id))
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
            ground.happen(operation_id, ev.LeaseEnded(dispatch_id=dispatch_id))
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
    ground.happen(operation_id, ev.LeaseEnded(dispatch_id=dispatch_id))
    ground.happen(operation_id, ev.Redispatch(actor="p", reason="r", quiescent_at=None))
    assert ground.operation(operation_id).authorisation == 2
    assert ground.happen(operation_id, accepted(dispatch_id)).applied
    assert ground.operation(operation_id).phase == "accepted"


def test_an_id_of_a_former_dispatch_is_an_orphan_once_another_is_current(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    former = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded(dispatch_id=former))
    late = ground.step(operation_id, accepted(former))
    ground.happen(operation_id, ev.Redispatch(actor="p", reason="r", quiescent_at=None))
    current = ground.mark(operation_id)
    assert ground.save(late)[0].status is Status.EVIDENCE
    assert (ground.operation(operation_id).dispatch_id, ground.operation(operation_id).phase) == (
        current,
        "dispatching",
    )
    assert ground.one("remote_jobs", operation_id, "role", "dispatch_id") == {"role": "orphan", "dispatch_id": former}


# -- what a failover may have lost -------------------------------------------------------------------------------------


def forget_dispatch(ground: Ground, dispatch_id: DispatchId) -> None:
    ground.sql("delete from coatcheck.dispatches where dispatch_id = %s", dispatch_id)


def forget_mark(ground: Ground, operation_id: OperationId, dispatch_id: DispatchId) -> None:
    """As a promoted standby would have it that had not received the mark."""
    forget_dispatch(ground, dispatch_id)
    ground.sql("delete from coatcheck.history where operation_id = %s and revision = 1", operation_id)
    ground.sql(
        "update coatcheck.operations set phase = 'prepared', revision = 0, dispatch_id = null, dispatch_count = 0, account = null "
        "where operation_id = %s",
        operation_id,
    )
    ground.sql("update coatcheck.outbox set action = 'dispatch', account = null where operation_id = %s", operation_id)


@pytest.mark.parametrize("outcome", ENDS)
def test_a_vanished_dispatch_is_written_again_with_an_incident(ground: Ground, outcome: str) -> None:
    operation_id = ground.enqueue("k", estimate="3")
    dispatch_id = ground.mark(operation_id)
    forget_dispatch(ground, dispatch_id)
    assert ground.happen(operation_id, replies(dispatch_id)[outcome]).applied
    dispatch = ground.one("dispatches", operation_id)
    assert (dispatch["dispatch_id"], dispatch["outcome"], dispatch["number"]) == (dispatch_id, outcome, 1)
    assert (dispatch["displaced"], dispatch["held"]) == (False, 3)
    assert "dispatch_vanished" in {row["kind"] for row in ground.all("incidents", operation_id)}


def test_an_id_whose_mark_was_lost_with_a_failover_still_finds_its_operation(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, dispatch_id)
    step = advance(marked, accepted(dispatch_id), marked.read_at)
    assert isinstance(step, ConcludeStep)
    assert ground.save(step, marked=marked)[0].applied
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.dispatch_id, operation.account) == ("accepted", dispatch_id, ACCOUNT)


def test_a_lost_mark_whose_id_another_owns_leaves_doubt(ground: Ground) -> None:
    owner, operation_id = ground.enqueue_many(2)
    ground.accept(owner, JOB)
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, dispatch_id)
    step = advance(marked, accepted(dispatch_id), marked.read_at)
    assert isinstance(step, ConcludeStep)
    assert ground.save(step, marked=marked)[0].status is Status.OWNED
    assert (ground.operation(operation_id).phase, ground.operation(operation_id).dispatch_id) == (
        "uncertain",
        dispatch_id,
    )


@pytest.mark.breaks("S2: one")
def test_a_lost_mark_is_displaced_where_another_dispatch_holds_the_authorisation(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    lost = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, lost)
    current = ground.mark(operation_id)
    step = advance(marked, accepted(lost), marked.read_at)
    assert isinstance(step, ConcludeStep)
    assert ground.save(step, marked=marked)[0].status is Status.EVIDENCE
    rows = {row["dispatch_id"]: (row["displaced"], row["number"]) for row in ground.all("dispatches", operation_id)}
    assert rows == {current: (False, 1), lost: (True, 2)}
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}
    assert ground.happen(operation_id, accepted(current, RemoteJobId("job-2"))).applied


@pytest.mark.breaks("S2: one")
def test_a_lost_mark_that_meets_a_new_mark_in_the_making_is_stale_then_displaced(
    database: postgres.Database, ground: Ground
) -> None:
    """The new mark commits while the old reply waits for the operation's lock: what its snapshot saw is too old to judge by."""
    operation_id = ground.enqueue("k")
    lost = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, lost)
    late = advance(marked, accepted(lost), marked.read_at)
    assert isinstance(late, ConcludeStep)
    with Ground(database, "worker-2") as other, database.connect() as holder, ThreadPoolExecutor(2) as pool:
        holder.execute("begin")
        holder.execute("select from coatcheck.operations for no key update")
        marking = pool.submit(other.mark, operation_id)
        until(ground.lock_waiters)
        saving = pool.submit(ground.save, late, marked=marked)
        until(lambda: ground.lock_waiters() == 2)
        holder.execute("commit")
        current = marking.result(timeout=20)
        assert saving.result(timeout=20)[0].status is Status.STALE
    assert [row["dispatch_id"] for row in ground.all("dispatches", operation_id)] == [current]
    assert ground.save(late, marked=marked)[0].status is Status.EVIDENCE
    assert {row["dispatch_id"]: row["displaced"] for row in ground.all("dispatches", operation_id)} == {
        current: False,
        lost: True,
    }


@pytest.mark.breaks("S2: one")
def test_a_proof_that_is_contradicted_after_the_next_mark_is_displaced(ground: Ground) -> None:
    """Throttled, marked again, and then an id for the first after all: the unique index must not fail the batch that carries it."""
    operation_id, neighbour = ground.enqueue_many(2)
    first = ground.mark(operation_id)
    late = ground.step(operation_id, accepted(first))
    ground.happen(operation_id, replies(first)["throttled"])
    second = ground.mark(operation_id)
    assert isinstance(late, ConcludeStep)
    other = ground.step(neighbour, accepted(ground.mark(neighbour), RemoteJobId("job-2")))
    assert [saved.status for saved in ground.save(late, other)] == [Status.EVIDENCE, Status.APPLIED]
    rows = {
        row["dispatch_id"]: (row["outcome"], row["displaced"], row["charged"])
        for row in ground.all("dispatches", operation_id)
    }
    assert rows == {first: ("accepted", True, None), second: ("open", False, None)}


@pytest.mark.breaks("S2", "nothing exists", "S4")
def test_an_id_whose_operation_is_gone_is_kept_as_a_displaced_orphan(ground: Ground) -> None:
    operation_id, neighbour = ground.enqueue_many(2)
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    step = ground.step(operation_id, accepted(dispatch_id))
    other = ground.step(neighbour, accepted(ground.mark(neighbour), RemoteJobId("job-2")))
    ground.sql("delete from coatcheck.operations where operation_id = %s", operation_id)
    saves = [ground.as_save(step, marked=marked), ground.as_save(other)]
    assert [(saved.status, saved.revision) for saved in ground.write(saves)] == [
        (Status.EVIDENCE, None),
        (Status.APPLIED, 2),
    ]
    assert ground.one("dispatches", operation_id, "outcome", "displaced") == {"outcome": "accepted", "displaced": True}
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}


# -- what a reply says of its account ----------------------------------------------------------------------------------


def status(number: int) -> Exchange:
    return Exchange(stage=Stage.BODY_RECEIVED, status=number, bytes_sent=1)


def pause(ground: Ground) -> str | None:
    (row,) = ground.sql("select dispatch_pause_reason from coatcheck.providers where name = 'genace'")
    reason: str | None = row["dispatch_pause_reason"]
    return reason


def answered(ground: Ground, operation_id: OperationId, number: int) -> None:
    dispatch_id = ground.mark(operation_id)
    reply = (
        accepted(dispatch_id, RemoteJobId(f"j-{operation_id}"))
        if number == 201
        else ev.Rejected(dispatch_id=dispatch_id, status=number)
    )
    ground.happen(operation_id, reply, exchange=status(number))


@pytest.mark.parametrize(
    ("numbers", "paused"),
    [
        ([401], True),
        ([402], True),
        ([422, 400], False),
        ([403] * 4, False),
        ([403] * 5, True),
        ([403, 403, 403, 201, 403, 403], False),
        ([403, 403, 422, 403, 403, 403, 403, 403], True),
    ],
)
def test_a_refused_credential_pauses_the_account(ground: Ground, numbers: list[int], paused: bool) -> None:
    for operation_id, number in zip(ground.enqueue_many(len(numbers)), numbers, strict=True):
        answered(ground, operation_id, number)
    assert (pause(ground) is not None) == paused


@pytest.mark.parametrize(
    ("numbers", "paused"),
    [([403] * 5, True), ([403, 403, 201, 403, 403, 403], False), ([201, *[403] * 5], True), ([201, 401], True)],
)
def test_403s_in_a_row_are_counted_within_a_batch_in_its_order(
    ground: Ground, numbers: list[int], paused: bool
) -> None:
    saves = []
    for operation_id, number in zip(ground.enqueue_many(len(numbers)), numbers, strict=True):
        dispatch_id = ground.mark(operation_id)
        reply = (
            accepted(dispatch_id, RemoteJobId(f"j-{operation_id}"))
            if number == 201
            else ev.Rejected(dispatch_id=dispatch_id, status=number)
        )
        saves.append(ground.as_save(ground.step(operation_id, reply), status(number)))
    ground.write(saves)
    assert (pause(ground) is not None) == paused


def test_a_403_that_is_written_twice_counts_once(ground: Ground) -> None:
    """A save whose commit was not seen is written again."""
    for operation_id in ground.enqueue_many(3):
        step = ground.step(operation_id, ev.Rejected(dispatch_id=ground.mark(operation_id), status=403))
        for _ in range(2):
            ground.save(step, exchange=status(403))
    assert pause(ground) is None
    assert ground.sql("select forbidden_count from coatcheck.providers") == [{"forbidden_count": 3}]


def test_a_vanished_dispatch_of_an_account_that_was_changed_since_is_observed_with_its_own(ground: Ground) -> None:
    """A remote job is looked up with the credential that made it."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, dispatch_id)
    ground.sql("update coatcheck.operations set account = 'other' where operation_id = %s", operation_id)
    step = advance(marked, accepted(dispatch_id), marked.read_at)
    assert isinstance(step, ConcludeStep)
    assert ground.save(step, marked=marked)[0].applied
    assert ground.operation(operation_id).account == ACCOUNT
    assert ground.one("outbox", operation_id, "account") == {"account": ACCOUNT}
    assert [message.operation_id for message in ground.claim(Action.OBSERVE)] == [operation_id]


def test_a_reply_that_cannot_be_stored_fails_alone(ground: Ground) -> None:
    """The caller hears of it, and the operation still concludes without the quotation."""
    operation_id = ground.enqueue("k")
    step = ground.step(operation_id, ev.Doubted(dispatch_id=ground.mark(operation_id), cause="c"))
    assert isinstance(step, ConcludeStep)
    with pytest.raises(psycopg.DataError, match="NUL"):
        ground.save(replace(step, cause="a\0b"))
    assert ground.save(step)[0].applied
