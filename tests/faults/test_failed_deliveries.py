"""A delivery that fails after success stays a delivery's failure: the render is not touched, and nothing is posted again."""

import asyncio
from collections.abc import Awaitable
from uuid import uuid4

import pytest

from coatcheck import Coatcheck, NotFound, Operation
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from faults.stage import QUICK, Stage

BROKEN = {**QUICK, "output": {"kind": "status", "status": 500}}


def test_downloads_that_keep_failing_are_parked_and_cost_nothing_more(stage: Stage) -> None:
    (one,) = stage.enqueue(BROKEN)
    stage.work(COATCHECK_DELIVER_TRIES="3")
    stage.check()
    end = stage.operation(one)
    assert (end["phase"], end["render_state"], end["delivery_state"]) == ("accepted", "succeeded", "failed")
    (lane,) = stage.rows("select * from coatcheck.outbox")
    assert (lane["lane"], lane["action"], lane["park_reason"]) == (1, "deliver", "delivery_failed")
    (job,) = stage.sim.jobs()
    assert job["downloads"] == 3
    assert stage.posts(one) == 1
    stage.finish()
    assert stage.sim.jobs()[0]["downloads"] == 3
    assert len(stage.sim.posts) == 1


def test_an_expired_address_is_looked_up_again_and_delivered(stage: Stage) -> None:
    (one,) = stage.enqueue({**QUICK, "output": {"kind": "expired", "nth": 1}})
    stage.work()
    stage.check()
    assert stage.events(one)[4:] == ["source_expired", "refreshed", "output_delivered"]
    assert stage.operation(one)["delivery_state"] == "delivered"
    assert stage.sim.jobs()[0]["downloads"] == 2
    assert stage.posts(one) == 1


def test_a_foreign_id_is_answered_like_an_unknown_one(stage: Stage) -> None:
    (one,) = stage.enqueue()
    stage.work()

    async def answers() -> list[str]:
        settings = stage.settings({"COATCHECK_DATABASE_URL": stage.database.url})
        async with Coatcheck(settings) as coatcheck:
            assert (
                await coatcheck.for_tenant("ada").get(operation_text(OperationId(one)))
            ).operation_id == operation_text(OperationId(one))
            return [
                str(await refusal(coatcheck.for_tenant("bob").get(operation_text(OperationId(asked)))))
                for asked in (one, uuid4())
            ]

    foreign, unknown = asyncio.run(answers())
    assert foreign == unknown


async def refusal(read: Awaitable[Operation]) -> NotFound:
    with pytest.raises(NotFound) as refused:
        await read
    return refused.value
