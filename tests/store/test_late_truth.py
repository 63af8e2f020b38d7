"""Every order of a reply, the sweep, a person's decision and a second reply ends where the design says, to the unit."""

from collections.abc import Callable

import pytest

from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, OperationId, RemoteJobId
from coatcheck.core.steps import Refusal
from store.audited import audited
from store.ground import Ground
from store.late_truth import HELD, PAIRS, Happening, Order, Story, orders, told

Making = Callable[[Operation, list[DispatchId], str], ev.Event]


def _job(name: str, number: int) -> RemoteJobId:
    return RemoteJobId(f"{name}-job-{number}")


def _named(dispatch: int, number: int) -> Making:
    return lambda _, made, name: ev.Accepted(dispatch_id=made[dispatch], remote_job_id=_job(name, number))


EVENTS: dict[Happening, Making] = {
    Happening.SWEEP: lambda *_: ev.LeaseEnded(),
    Happening.REPLY: _named(0, 1),
    Happening.AGAIN: _named(0, 1),
    Happening.OTHERWISE: _named(0, 8),
    Happening.SECOND: _named(1, 2),
    Happening.REJECTED: lambda _, made, name: ev.Rejected(dispatch_id=made[0], status=422),
    Happening.UNSENT: lambda _, made, name: ev.NotSent(dispatch_id=made[0], cause="refused"),
    Happening.DOUBTED: lambda _, made, name: ev.Doubted(dispatch_id=made[0], cause="cut"),
    Happening.ADOPT: lambda _, made, name: ev.Adopt(actor="ana", reason="asked", remote_job_id=_job(name, 1)),
    Happening.ADOPT_OTHER: lambda _, made, name: ev.Adopt(actor="ana", reason="asked", remote_job_id=_job(name, 9)),
    Happening.PROVE_ABSENT: lambda operation, *_: ev.ProveAbsent(
        actor="ana", reason="asked", quiescent_at=operation.read_at
    ),
    Happening.REDISPATCH: lambda operation, *_: ev.Redispatch(
        actor="ana", reason="asked", quiescent_at=operation.read_at
    ),
    Happening.WRITE_OFF: lambda *_: ev.WriteOff(actor="ana", reason="asked"),
    Happening.WRITE_OFF_RELEASED: lambda *_: ev.WriteOff(actor="ana", reason="asked", released=True),
    Happening.CANCEL: lambda *_: ev.Cancel(actor="ana", reason="asked"),
}


def _live(ground: Ground, operation_id: OperationId, order: Order, name: str) -> None:
    """One operation through one order; what the table refuses changes nothing and has no place here."""
    made = [ground.mark(operation_id)]
    for happening in order:
        if happening is Happening.MARK:
            made.append(ground.mark(operation_id))
            continue
        if happening is Happening.OTHERS:
            ground.accept(ground.enqueue(f"other {name}", estimate="0"), _job(name, 1))
            continue
        operation = ground.operation(operation_id)
        step = advance(operation, EVENTS[happening](operation, made, name), operation.read_at)
        assert not isinstance(step, Refusal), (happening, step)
        ground.save(step, marked=operation)


def _found(ground: Ground, operation_id: OperationId, name: str) -> tuple[object, ...]:
    operation = ground.operation(operation_id)
    jobs = {row["remote_job_id"]: row["role"] for row in ground.all("remote_jobs", operation_id)}
    rows = sorted(ground.all("dispatches", operation_id), key=lambda row: row["number"])
    owner = operation.remote_job_id
    assert owner is None or jobs[owner] == "owner"
    orphans = {int(job.removeprefix(f"{name}-job-")) for job, role in jobs.items() if role == "orphan"}
    kinds = {row["kind"] for row in ground.all("incidents", operation_id)}
    return operation.phase, owner, orphans, [row["charged"] for row in rows], "remote_id_owned" in kinds


def _expected(story: Story, name: str) -> tuple[object, ...]:
    owner = None if story.job is None else _job(name, story.job)
    charges = [dispatch.charged for dispatch in story.dispatches]
    return story.phase, owner, story.orphans, charges, story.was_disputed


@pytest.mark.parametrize(("reply", "decision"), PAIRS)
def test_every_order_ends_where_the_design_says(ground: Ground, reply: Happening, decision: Happening) -> None:
    disputed: set[OperationId] = set()
    for number, order in enumerate(orders(reply, decision)):
        name = f"{number}"
        operation_id = ground.enqueue(name, estimate=str(HELD))
        _live(ground, operation_id, order, name)
        story = told(order)[1]
        assert _found(ground, operation_id, name) == _expected(story, name), (order, story.end())
        disputed |= {operation_id} if story.is_disputed else set()
    # nobody said whose job it is, and that is all that the audit finds
    assert {(each.kind, each.operation_id) for each in audited(ground.database)} == {
        ("job_disputed", each) for each in disputed
    }


def test_the_orders_are_many_and_end_in_every_way() -> None:
    every = {order for reply, decision in PAIRS for order in orders(reply, decision)}
    ends = {told(order)[1].phase for order in every}
    assert len(every) > 300
    assert ends == {"dispatching", "uncertain", "accepted", "prepared", "rejected", "cancelled", "abandoned"}
