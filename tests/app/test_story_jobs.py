"""Whose a job is, as the story tells it: one that two operations name, one that came too late, one that came along with another."""

from decimal import Decimal
from uuid import UUID

import pytest

from app.rows import Row, dispatch, incident, page, page_of_tenant, parked
from coatcheck.core.evidence import Stage
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId, Outcome, Phase
from core.operations import NOW, OPERATION, operation_in

NAME = operation_text(OPERATION)
UNCERTAIN = operation_in(Phase.UNCERTAIN)
SPENT = dispatch(outcome=Outcome.ACCEPTED, remote_job_id="job-1")


def disputed(phase: Phase = Phase.UNCERTAIN) -> dict[str, list[Row]]:
    owner = OperationId(UUID(int=77))
    row = dispatch(Stage.BODY_RECEIVED, Outcome.ACCEPTED, remote_job_id="job-9", job_operation_id=owner)
    return {
        "dispatches": [row],
        "messages": [parked("uncertain")] if phase is Phase.UNCERTAIN else [],
        "incidents": [incident("remote_id_owned")],
    }


@pytest.mark.parametrize("phase", [Phase.UNCERTAIN, Phase.ABANDONED, Phase.CANCELLED])
def test_a_reply_that_names_another_operations_job_is_told_as_a_dispute_and_as_nothing_else(phase: Phase) -> None:
    told = page(operation_in(phase), **disputed(phase))
    owner = operation_text(OperationId(UUID(int=77)))
    assert "Dispatch 1: a request whose reply names a job of another operation" in told
    assert f'A reply names the job "job-9", which the operation {owner} has: one of the two is wrong.' in told
    assert "before anything of it is delivered" in told
    assert f"coatcheck reconcile note {NAME} --reason REASON" in told
    for lie in ("accepted", "orphan", "too late", "neither gets"):
        assert lie not in told


def test_a_tenant_is_told_of_a_dispute_without_anybody_elses_id() -> None:
    told = page_of_tenant(UNCERTAIN, **disputed())
    assert "which another operation has: one of the two is wrong" in told
    assert told.count("op_") == told.count(NAME)
    assert "coatcheck " not in told


def test_the_owner_of_a_disputed_job_is_told_that_another_reply_names_it() -> None:
    told = page(operation_in(Phase.ACCEPTED), dispatches=[SPENT], incidents=[incident("remote_id_disputed")])
    assert "A reply to another operation named the remote job that this one has. One of the two is wrong" in told
    assert f"coatcheck reconcile note {NAME} --reason REASON" in told


def test_an_orphan_says_who_dealt_with_it_and_to_a_tenant_only_that_somebody_did() -> None:
    late = dispatch(
        outcome=Outcome.ACCEPTED,
        remote_job_id="job-9",
        job_operation_id=UNCERTAIN.operation_id,
        job_resolved_at=NOW,
        job_resolved_by="max",
        job_resolution="refunded",
    )
    operation = operation_in(Phase.ABANDONED)
    assert (
        'It was dealt with already: by "max" at 2026-11-29 12:00:00 UTC (now); the reason given: "refunded".'
        in page(operation, dispatches=[late])
    )
    told = page_of_tenant(operation, dispatches=[late])
    assert "It was dealt with already" in told
    assert "max" not in told
    assert "refunded" not in told


@pytest.mark.parametrize(
    ("money", "told"),
    [
        ({"orphaned": Decimal(9)}, "Besides, 9 credits are charged then for another job of the same request."),
        ({"orphaned": Decimal(9), "charged": Decimal(12), "basis": "service", "settled_at": NOW}, "12 credits are charged; that is the service's own figure. Of these, 9 credits are for another job"),
    ],
)  # fmt: skip
def test_what_another_job_of_the_same_request_cost_is_told_apart(money: dict[str, object], told: str) -> None:
    assert told in page(UNCERTAIN, dispatches=[dispatch() | money])


def test_a_job_under_a_word_that_nobody_knows_was_seen_and_the_setting_is_named() -> None:
    operation = operation_in(Phase.ACCEPTED, remote_status="dreaming")
    told = page(operation, dispatches=[SPENT])
    assert (
        f'{NAME} has the remote job "{operation.remote_job_id}": the service calls it "dreaming", which is no known word'
        in told
    )
    assert "Give it a meaning with the provider's setting STATUS_WORDS." in told
    assert "not seen yet" not in told
    assert "STATUS_WORDS" not in page_of_tenant(operation, dispatches=[SPENT])
    assert "it was not seen yet" in page(operation_in(Phase.ACCEPTED), dispatches=[SPENT])
