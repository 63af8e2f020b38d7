"""How a worker sees the end of a POST through: again and again while the operation moves, and to an end in every case."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from coatcheck.core import events as ev
from coatcheck.core.operation import Operation, RemoteJobId
from coatcheck.workers.conclusion import Ended, conclude
from store.desks import desk_on
from store.ground import SEEN, Ground
from store.test_failover import forget_mark
from waiting import until

JOB = RemoteJobId("job-1")


def see_through(ground: Ground, marked: Operation, reply: ev.Reply) -> None:
    """Let a worker conclude that read the operation when it was `marked`."""

    async def story() -> None:
        async with desk_on(ground.database) as desk, asyncio.timeout(20):
            ended = Ended(
                reply=reply,
                exchange=SEEN,
                account="genace",
                number=marked.dispatch_count,
                authorisation=marked.authorisation,
                authorised_by=marked.authorised_by,
                settle_s=1,
                began=desk.seams.clock.boottime(),
                secret="key-for-tests",
            )
            await conclude(desk, marked, ended)

    asyncio.run(story())


def test_a_reply_of_a_former_dispatch_ends_as_evidence_while_another_is_under_way(ground: Ground) -> None:
    """The table would accept it in dispatching; the statement refuses it by the dispatch, and the worker asks no third time."""
    operation_id = ground.enqueue("k")
    former = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Redispatch(actor="p", reason="r", quiescent_at=None))
    ground.mark(operation_id)
    before = ground.operation(operation_id)
    see_through(ground, marked, ev.Accepted(dispatch_id=former, remote_job_id=JOB))
    after = ground.operation(operation_id)
    assert (after.phase, after.revision - before.revision) == ("dispatching", 1)
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}


def test_a_word_that_the_evidence_already_disproves_ends_too(ground: Ground) -> None:
    owner, operation_id = ground.enqueue_many(2)
    ground.accept(owner, JOB)
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    see_through(ground, marked, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=JOB))
    assert ground.operation(operation_id).phase == "uncertain"
    see_through(ground, marked, ev.NotSent(dispatch_id=dispatch_id, cause="refused"))
    assert ground.operation(operation_id).phase == "uncertain"


def test_a_return_to_prepared_is_judged_again_after_a_cancel(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    ground.happen(operation_id, ev.Cancel(actor="p", reason="r"))
    see_through(ground, marked, ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None))
    assert ground.operation(operation_id).phase == "cancelled"


def test_an_id_finds_its_operation_after_the_sweep(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    see_through(ground, marked, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=JOB))
    assert ground.operation(operation_id).remote_job_id == JOB


def test_a_doubt_whose_mark_was_lost_is_not_forgotten_while_the_operation_moves(ground: Ground) -> None:
    """The save waits for somebody's lock, comes too late, and the reloaded record says prepared: nothing may be sent again by that."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    forget_mark(ground, operation_id, dispatch_id)
    with ground.database.connect() as connection, ThreadPoolExecutor() as pool:
        connection.execute("begin")
        connection.execute("update coatcheck.operations set revision = revision + 1")
        connection.execute(
            "insert into coatcheck.history select operation_id, 1, 'noted', 'p', at, to_phase, to_phase, to_render_state,"
            " to_render_state, to_delivery_state, to_delivery_state from coatcheck.history"
        )
        doubted = ev.Doubted(dispatch_id=dispatch_id, cause="cut")
        ending = pool.submit(see_through, ground, marked, doubted)
        until(lambda: ground.lock_waiters() == 1)
        connection.execute("commit")
        ending.result(timeout=20)
    operation = ground.operation(operation_id)
    assert (operation.phase, operation.dispatch_id) == ("uncertain", dispatch_id)
