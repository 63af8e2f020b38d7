"""A worker's log says once what is a person's from now on, with the command that shows it, and nothing of what was asked for."""

import logging
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

import postgres
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.seams import Point
from coatcheck.sim import simulated_service
from faults.stage import QUICK, Stage
from faults.strike import Strike

SECRET = "a bird that nobody may know of"


@pytest.fixture
def stage(database: postgres.Database, tmp_path: Path) -> Iterator[Stage]:
    with simulated_service(seed=7) as sim, Stage(database, sim, tmp_path) as made:
        yield made


def said(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The alarms, by what makes them useful; none has more than that."""
    records = [each for each in caplog.records if each.name == "coatcheck.workers.alarms"]
    names = ("operation_id", "lane", "reason", "next")
    found = [
        {"event": each.getMessage(), **{name: vars(each)[name] for name in names if name in vars(each)}}
        for each in records
    ]
    assert SECRET not in repr([vars(each) for each in records])
    return found


def uncertain(operation_id: UUID) -> dict[str, object]:
    name = operation_text(OperationId(operation_id))
    return {"event": "operation is uncertain", "operation_id": name, "next": f"coatcheck reconcile show {name}"}


def parked(operation_id: UUID, reason: str) -> dict[str, object]:
    name = operation_text(OperationId(operation_id))
    then = f"coatcheck operations show {name}"
    return {"event": "message is parked", "operation_id": name, "lane": 0, "reason": reason, "next": then}


def test_a_lost_reply_is_said_as_doubt_and_its_parked_message_is_not_said_besides(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    (operation,) = stage.enqueue({**QUICK, "create": "accept_then_drop"}, words=SECRET)
    with caplog.at_level(logging.WARNING):
        stage.work()
        stage.work()
    assert said(caplog) == [uncertain(operation)]


def test_the_end_of_a_lease_under_a_mark_is_said_as_doubt(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    (operation,) = stage.enqueue(words=SECRET)
    stage.worker(Strike(point=Point.D8_REQUEST_COMPLETE)).ended()
    with caplog.at_level(logging.WARNING):
        stage.finish()
    assert said(caplog) == [uncertain(operation)]


def test_a_parked_message_is_said_with_its_reason_and_what_goes_well_is_not(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    (missing,) = stage.enqueue({**QUICK, "look": {"kind": "status", "status": 404, "times": "always"}}, words=SECRET)
    with caplog.at_level(logging.WARNING):
        stage.work(NOT_FOUND_GRACE_S="0.2")
        (spent,) = stage.enqueue(words=f"{SECRET} again")
        stage.rows("update coatcheck.outbox set lease_count = 6 where operation_id = %s returning lane", spent)
        stage.enqueue(words=f"{SECRET} at last")
        stage.work()
    assert said(caplog) == [parked(missing, "missing"), parked(spent, "lease_count")]
