"""A batch costs what its rows cost: no statement compares each row of a batch with each other one.

PostgreSQL knows nothing about what a part of a statement yields; where it expects one row and gets a hundred it may choose a loop in a loop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, LiteralString

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId, RenderState
from coatcheck.store import statements
from coatcheck.store.db import Database, Plan, Row
from store.ground import ACCOUNT, Ground, look, stored

COUNT = 60
ANALYZE: LiteralString = """
    analyze coatcheck.operations, coatcheck.outbox, coatcheck.dispatches, coatcheck.deliveries, coatcheck.snapshots, coatcheck.history,
      coatcheck.remote_jobs, coatcheck.allowances, coatcheck.accounts"""
Node = Mapping[str, Any]


@pytest.fixture
def ground(database: postgres.Database) -> Iterator[Ground]:
    with Ground(database) as made:
        yield made


def marked(ground: Ground, operation_ids: Sequence[OperationId]) -> None:
    events = {
        each: ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT) for each in operation_ids
    }
    ground.save(*(ground.step(each, event) for each, event in events.items()))


def accepted(ground: Ground, operation_ids: Sequence[OperationId]) -> None:
    marked(ground, operation_ids)
    ground.save(
        *(
            ground.step(each, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=job_of(each)))
            for each in operation_ids
            if (dispatch_id := ground.operation(each).dispatch_id) is not None
        )
    )


def succeeded(ground: Ground, operation_ids: Sequence[OperationId]) -> None:
    accepted(ground, operation_ids)
    ground.save(*(ground.step(each, look(job_of(each), RenderState.SUCCEEDED, outputs=1)) for each in operation_ids))


def delivered(ground: Ground, operation_ids: Sequence[OperationId]) -> None:
    succeeded(ground, operation_ids)
    ground.save(*(ground.step(each, stored()) for each in operation_ids))


def doubted(ground: Ground, operation_ids: Sequence[OperationId]) -> None:
    marked(ground, operation_ids)
    ground.save(*(ground.step(each, ev.LeaseEnded()) for each in operation_ids))


def job_of(operation_id: OperationId) -> RemoteJobId:
    return RemoteJobId(f"job-{operation_id}")


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["unknown", "analyzed"])
@pytest.mark.parametrize("happens", [marked, accepted, succeeded, delivered, doubted])
def test_no_statement_compares_each_row_of_a_batch_with_each_other(
    ground: Ground,
    happens: Callable[[Ground, Sequence[OperationId]], None],
    is_analyzed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether the server knows nothing of the tables yet, or has just looked at them."""
    operation_ids = ground.enqueue_many(COUNT)
    compared: dict[str, float] = {}
    # the story itself reads one operation after the other
    loads = {statements.statement("store", "load"), statements.statement("store", "load_deliveries")}
    fetch = Database.fetch

    async def explained(
        self: Database, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        if text in loads:
            return await fetch(self, text, parameters, plan=plan)
        if is_analyzed:
            ground.sql(ANALYZE)
        sent, names = statements.numbered(text)
        async with await psycopg.AsyncConnection.connect(ground.database.url) as other:
            cursor = psycopg.AsyncRawCursor(other)
            await cursor.execute(
                b"explain (analyze, format json) " + sent, [(parameters or {})[name] for name in names]
            )
            ((plans,),) = await cursor.fetchall()
            await other.rollback()
        compared[text.partition("\n")[0]] = max(map(_compared, _nodes(plans[0]["Plan"])))
        return await fetch(self, text, parameters, plan=plan)

    monkeypatch.setattr(Database, "fetch", explained)
    happens(ground, operation_ids)
    assert compared
    assert {text: count for text, count in compared.items() if count > COUNT * 5} == {}


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for each in node.get("Plans", ()):
        yield from _nodes(each)


def _compared(node: Node) -> float:
    """How many pairs of rows it looked at in vain."""
    count: float = node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"]
    return count
