"""A failover may lose a mark that was sent under: the reply still finds its operation, and no id of it is dropped."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import postgres
from coatcheck.core.actions import Action
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId
from coatcheck.core.steps import ConcludeStep
from coatcheck.store.door import Status
from store.ground import ACCOUNT, Ground
from store.replies import ENDS, JOB, accepted, replies
from waiting import until


def forget_dispatch(ground: Ground, dispatch_id: DispatchId) -> None:
    """What was written with it is gone, too: its hold."""
    ground.sql(
        "with gone as (delete from coatcheck.dispatches where dispatch_id = %s returning held) "
        "update coatcheck.allowances set held = allowances.held - gone.held from gone",
        dispatch_id,
    )


def forget_mark(ground: Ground, operation_id: OperationId, dispatch_id: DispatchId) -> None:
    """As a promoted standby would have it that had not received the mark."""
    forget_dispatch(ground, dispatch_id)
    ground.sql("delete from coatcheck.history where operation_id = %s and revision = 1", operation_id)
    ground.sql(
        "update coatcheck.operations set phase = 'prepared', revision = 0, dispatch_id = null, dispatch_count = 0, account = null "
        "where operation_id = %s",
        operation_id,
    )
    ground.sql("update coatcheck.accounts set in_flight_count = in_flight_count - 1")
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


@pytest.mark.parametrize(
    ("outcome", "phase", "lanes"), [("uncertain", "uncertain", ["reconcile"]), ("rejected", "rejected", [])]
)
def test_what_may_have_been_sent_under_a_lost_mark_is_not_sent_again(
    ground: Ground, outcome: str, phase: str, lanes: list[str]
) -> None:
    """The promoted standby says prepared, and the worker knows better: another mark would be a second POST."""
    operation_id = ground.enqueue("k", estimate="3")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, dispatch_id)
    step = advance(marked, replies(dispatch_id)[outcome], marked.read_at)
    assert isinstance(step, ConcludeStep)
    assert ground.save(step, marked=marked)[0].applied
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.dispatch_id) == (phase, dispatch_id)
    assert [row["action"] for row in ground.all("outbox", operation_id)] == lanes


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
    assert rows == {first: ("accepted", True, 2), second: ("open", False, None)}


@pytest.mark.breaks("S2", "nothing exists", "S4")
def test_an_id_whose_operation_is_gone_is_kept_as_a_displaced_orphan(ground: Ground) -> None:
    operation_id, neighbour = ground.enqueue_many(2)
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    step = ground.step(operation_id, accepted(dispatch_id))
    other = ground.step(neighbour, accepted(ground.mark(neighbour), RemoteJobId("job-2")))
    ground.sql("delete from coatcheck.operations where operation_id = %s", operation_id)
    ground.sql("update coatcheck.accounts set in_flight_count = in_flight_count - 1")
    forget_dispatch(ground, dispatch_id)
    saves = [ground.as_save(step, marked=marked), ground.as_save(other)]
    assert [(saved.status, saved.revision) for saved in ground.write(saves)] == [
        (Status.EVIDENCE, None),
        (Status.APPLIED, 2),
    ]
    assert ground.one("dispatches", operation_id, "outcome", "displaced") == {"outcome": "accepted", "displaced": True}
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}


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
