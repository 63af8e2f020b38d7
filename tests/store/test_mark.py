"""The mark: at most one POST for an authorisation, and none that a cancel, a deadline, a pause or another's mark forbids."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import DispatchId, OperationId
from coatcheck.core.steps import MarkStep
from coatcheck.store.door import Status
from store.ground import ACCOUNT, Ground
from waiting import until


def marking(ground: Ground, operation_id: OperationId) -> MarkStep:
    """The mark that a worker would save who reads the operation now, whatever the table says of it."""
    revision = ground.operation(operation_id).revision
    return MarkStep(
        operation_id=operation_id, revision=revision, dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT
    )


def test_a_mark_writes_the_phase_the_dispatch_the_history_and_the_lane_in_one_transaction(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate="2.5")
    (message,) = ground.claim(Action.DISPATCH)
    dispatch_id = ground.mark(operation_id)
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.revision, operation.dispatch_id, operation.account) == (
        "dispatching",
        1,
        dispatch_id,
        ACCOUNT,
    )
    dispatch = ground.one("dispatches", operation_id)
    assert (dispatch["outcome"], dispatch["authorisation"], dispatch["number"], dispatch["held"]) == (
        "open",
        1,
        1,
        operation.estimate,
    )
    assert [(dispatch[end] - dispatch["begun_at"]).total_seconds() for end in ("send_by_at", "quiescent_at")] == [5, 77]
    lane = ground.one("outbox", operation_id)
    assert (lane["action"], lane["account"], lane["leased_by"]) == ("reconcile", ACCOUNT, ground.worker)
    assert lane["lease_token"] > message.lease_token
    assert (lane["visible_at"] - lane["leased_at"]).total_seconds() == 90
    assert ground.sql("select event, action, lease_count from coatcheck.history where revision = 1") == [
        {"event": "dispatch_marked", "action": "dispatch", "lease_count": 1}
    ]


def test_a_batch_marks_what_it_may_and_reports_the_rest(ground: Ground) -> None:
    good, behind, cancelling, early, late, marked, other = ground.enqueue_many(7)
    ground.sql("update coatcheck.operations set cancel_requested_at = now() where operation_id = %s", cancelling)
    ground.sql("update coatcheck.operations set not_before_at = now() + interval '1 h' where operation_id = %s", early)
    ground.sql("update coatcheck.operations set dispatch_by_at = now() - interval '1 s' where operation_id = %s", late)
    ground.mark(marked)
    steps = [marking(ground, each) for each in (good, behind, cancelling, early, late, marked, other)]
    ground.sql("update coatcheck.operations set revision = 1 where operation_id = %s", behind)
    ground.sql(
        "insert into coatcheck.history select operation_id, 1, 'test', 'test', now(), to_phase, to_phase, to_render_state, "
        "to_render_state, to_delivery_state, to_delivery_state from coatcheck.history where operation_id = %s",
        behind,
    )
    saved = ground.save(*steps)
    assert [each.status for each in saved] == [
        *(Status.APPLIED, Status.STALE, Status.STALE, Status.STALE, Status.STALE, Status.STALE),
        Status.APPLIED,
    ]
    assert [each.lease_token is not None for each in saved] == [each.applied for each in saved]
    assert ground.sql("select count(*) from coatcheck.dispatches") == [{"count": 3}]


def test_an_operation_that_is_not_there_is_stale(ground: Ground) -> None:
    step = MarkStep(
        operation_id=OperationId(ground.seams.ids.uuid7()),
        revision=0,
        dispatch_id=DispatchId(ground.seams.ids.uuid7()),
        account=ACCOUNT,
    )
    assert ground.save(step)[0].status is Status.STALE


def test_of_many_marks_that_race_for_one_operation_one_wins(database: postgres.Database, ground: Ground) -> None:
    operation_ids = ground.enqueue_many(20)
    start = Barrier(6)

    def race(number: int) -> list[Status]:
        with Ground(database, f"worker-{number}") as racer:
            steps = [marking(racer, each) for each in operation_ids]
            start.wait(timeout=20)
            return [saved.status for saved in racer.save(*steps)]

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(race, range(6)))
    for statuses in zip(*outcomes, strict=True):
        assert sorted(statuses) == [Status.APPLIED, *[Status.STALE] * 5]


def test_the_unique_index_on_the_authorisation_is_the_last_wall(ground: Ground) -> None:
    """Should every guard be fooled, by a restored backup or a hand in the database, money is still not spent twice."""
    operation_id, neighbour = ground.enqueue_many(2)
    ground.mark(operation_id)
    ground.sql(
        "update coatcheck.operations set phase = 'prepared' where operation_id = %s",
        operation_id,
    )
    with pytest.raises(psycopg.errors.UniqueViolation, match="dispatches_authorisation_idx"):
        ground.save(marking(ground, operation_id), marking(ground, neighbour))
    assert ground.operation(neighbour).phase == "prepared"
    ground.sql("update coatcheck.operations set phase = 'dispatching' where operation_id = %s", operation_id)


@pytest.mark.parametrize("paused", ["genace", "same account"])
def test_a_paused_account_waits_with_its_lane_moved(ground: Ground, paused: str) -> None:
    """Whichever of the account's names was paused, or was configured after the pause."""
    operation_id = ground.enqueue("k")
    ground.sql(
        "insert into coatcheck.providers (name, account, kind, dispatch_paused_at, dispatch_pause_reason, dispatch_paused_by) "
        "values (%s, 'genace', 'genace', now(), 'why', 'who') on conflict (name) do update set dispatch_paused_at = now(), "
        "dispatch_pause_reason = 'why', dispatch_paused_by = 'who'",
        paused,
    )
    (message,) = ground.claim(Action.DISPATCH)
    for count in (1, 2):
        assert ground.save(marking(ground, operation_id))[0].status is Status.PAUSED
        lane = ground.one("outbox", operation_id)
        assert (lane["action"], lane["wait_reason"], lane["wait_count"], lane["leased_by"]) == (
            "dispatch",
            "pause",
            count,
            None,
        )
        assert lane["lease_token"] > message.lease_token
        assert lane["wait_since_at"] < lane["visible_at"]
    assert ground.operation(operation_id).revision == 0
    assert ground.claim(Action.DISPATCH) == []


def test_a_pause_that_is_committed_between_check_and_mark_wins(database: postgres.Database, ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    step = marking(ground, operation_id)
    with ThreadPoolExecutor(1) as pool, database.connect() as person:
        with person.transaction():
            person.execute(
                "update coatcheck.providers set dispatch_paused_at = now(), dispatch_pause_reason = 'why', dispatch_paused_by = 'who'"
            )
            saving = pool.submit(ground.save, step)
            until(ground.lock_waiters)
        assert saving.result(timeout=20)[0].status is Status.PAUSED


def test_a_deadline_that_passes_while_the_mark_waits_for_its_row_forbids_it(
    database: postgres.Database, ground: Ground
) -> None:
    operation_id = ground.enqueue("k")
    ground.sql("update coatcheck.operations set dispatch_by_at = clock_timestamp() + interval '2 s'")
    step = marking(ground, operation_id)
    passed = "select from coatcheck.operations where dispatch_by_at < clock_timestamp()"
    with ThreadPoolExecutor(1) as pool, database.connect() as other:
        with other.transaction():
            other.execute("select from coatcheck.operations for no key update")
            saving = pool.submit(ground.save, step)
            until(ground.lock_waiters)
            assert not other.execute(passed).fetchall()
            until(lambda: other.execute(passed).fetchall())
        assert saving.result(timeout=20)[0].status is Status.STALE


def test_the_lease_of_a_mark_is_full_length_however_long_it_waited(database: postgres.Database, ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    step = marking(ground, operation_id)
    with ThreadPoolExecutor(1) as pool, database.connect() as other:
        with other.transaction():
            other.execute("select from coatcheck.operations for no key update")
            saving = pool.submit(ground.save, step)
            until(ground.lock_waiters)
            waited = other.execute("select clock_timestamp()").fetchone()
        assert saving.result(timeout=20)[0].applied
    lane = ground.one("outbox", operation_id)
    assert waited is not None
    assert (lane["visible_at"] - waited[0]).total_seconds() > 90


def test_a_message_of_a_marked_operation_never_leads_to_a_second_mark(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    first = marking(ground, operation_id)
    assert ground.save(first)[0].applied
    again = MarkStep(
        operation_id=operation_id, revision=1, dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT
    )
    assert [ground.save(each)[0].status for each in (first, again)] == [Status.STALE, Status.STALE]
    reply = ev.Throttled(dispatch_id=first.dispatch_id, retry_after_s=None)
    assert ground.happen(operation_id, reply).applied
    assert ground.save(marking(ground, operation_id))[0].applied
    assert [row["number"] for row in ground.all("dispatches", operation_id)] == [1, 2]
