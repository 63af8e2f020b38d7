"""What a story offers, to whom, and in whose words: each decision with its price, nothing that would be obeyed, no evidence for a tenant."""

import re
from datetime import timedelta

import pytest

from app.rows import Row, dispatch, entry, incident, lost_reply, message, page, page_of_tenant, parked, story
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Operation, Outcome, Phase, RemoteJobId, RenderState
from core.operations import NOW, OPERATION, operation_in, succeeded

NAME = operation_text(OPERATION)
UNCERTAIN = operation_in(Phase.UNCERTAIN)
LATER = NOW + timedelta(seconds=70)
HOSTILE = "\x1b[2J\x1b]0;owned\x07\nFORGED \u202egnp.exe\u2066"
TOLD = ("\x1b", "\x07", "\u202e", "\u2066", "\n")
COMMANDS = re.compile(
    r"coatcheck (?:reconcile \S+|providers \S+|allowance \S+|orphans \S+|operations \S+|messages \S+)"
)


# -- what can be done --------------------------------------------------------------------------------------------------


def test_an_uncertain_operation_offers_each_decision_with_its_price() -> None:
    lines = story(UNCERTAIN, **lost_reply())
    commands = [line for line in lines if line.startswith("coatcheck ")]
    assert [each.split()[2] for each in commands] == ["adopt", "prove-absent", "redispatch", "write-off"]
    assert all(NAME in each for each in commands)
    costly = next(line for line in lines if "COSTS MONEY" in line)
    assert lines[lines.index(costly) + 1] == f"coatcheck reconcile redispatch {NAME} --yes --reason REASON"
    assert "the first 5 credits then count as spent, and about 5 credits come on top" in costly
    assert not any("Refused until" in line for line in lines)


def test_what_would_be_too_early_says_until_when() -> None:
    told = page(UNCERTAIN, dispatches=[dispatch(quiescent_at=LATER)])
    assert told.count("Refused until 2026-11-29 12:01:10 UTC (in 70 seconds)") == 2
    assert "Until 2026-11-29 12:01:10 UTC (in 70 seconds), something of this request may still arrive" in told


def test_what_nobody_took_for_a_while_may_be_cancelled_and_what_is_fresh_or_kept_back_needs_nobody() -> None:
    old = NOW - timedelta(hours=3)
    prepared = operation_in(Phase.PREPARED)
    told = page(prepared, messages=[message(visible_at=old)])
    assert COMMANDS.findall(told) == ["coatcheck providers list", "coatcheck operations cancel"]
    assert 'If "genace" is right, run a worker that has it' in told
    for other in (message(), message(visible_at=old, account_wait="cap"), message(leased_by="w", visible_at=LATER)):
        assert COMMANDS.findall(page(prepared, messages=[other])) == []


@pytest.mark.parametrize("phase", [Phase.DISPATCHING, Phase.ACCEPTED, Phase.CANCELLED, Phase.ABANDONED])
def test_where_nothing_needs_a_person_nothing_is_offered(phase: Phase) -> None:
    assert (
        COMMANDS.findall(
            page(
                operation_in(phase),
                dispatches=[dispatch(outcome=Outcome.ACCEPTED, remote_job_id="job-1")],
                messages=[message("observe")],
            )
        )
        == []
    )


@pytest.mark.parametrize(
    ("operation", "kept", "commands"),
    [
        (
            operation_in(Phase.PREPARED),
            [message(wait_reason="pause")],
            ["providers list", "providers resume", "operations cancel"],
        ),
        (
            operation_in(Phase.PREPARED),
            [message(wait_reason="allowance")],
            ["allowance show", "allowance set", "operations cancel"],
        ),
        (operation_in(Phase.PREPARED), [parked("lease_count", "dispatch")], ["operations cancel", "messages resume"]),
        (succeeded(), [parked("delivery_failed", "deliver", 1)], ["operations redeliver"]),
        (succeeded(), [parked("lease_count", "deliver", 1)], ["messages resume"]),
        (operation_in(Phase.REJECTED), [], ["reconcile redispatch"]),
        (
            operation_in(Phase.ACCEPTED, observe_by_at=NOW),
            [parked("stalled", "observe")],
            ["operations reobserve", "reconcile write-off"],
        ),
        (
            operation_in(Phase.ACCEPTED, render_state=RenderState.MISSING),
            [parked("missing", "observe")],
            ["operations reobserve", "reconcile write-off"],
        ),
    ],
)
def test_what_waits_for_a_person_offers_its_way_out(operation: Operation, kept: list[Row], commands: list[str]) -> None:
    told = page(operation, messages=kept)
    assert [found.removeprefix("coatcheck ") for found in COMMANDS.findall(told)] == commands


@pytest.mark.parametrize("candidate", ["; rm -rf ~", "$(id)", "a'b", "--force", HOSTILE])
def test_a_candidate_cannot_become_a_command_of_its_own(candidate: str) -> None:
    lines = story(UNCERTAIN, dispatches=[dispatch(candidate_id=candidate)])
    (adopt,) = [line for line in lines if line.startswith("coatcheck reconcile adopt ")]
    words = {"; rm -rf ~": "'; rm -rf ~'", "$(id)": "'$(id)'", "a'b": "'a'\"'\"'b'"}
    assert adopt == f"coatcheck reconcile adopt {NAME} {words.get(candidate, 'JOB')} --reason REASON"


# -- whose eyes, and whose words ---------------------------------------------------------------------------------------


def test_a_tenant_is_told_what_happened_and_nothing_of_the_evidence() -> None:
    told = page_of_tenant(UNCERTAIN, incidents=[incident("no_output", "detail-x")], **lost_reply())
    assert "may have reached the service" in told
    assert "How far" not in told
    assert [
        secret for secret in ("job-17", "req-9a", "host-7", "job_id", "detail-x", "reconcile") if secret in told
    ] == []
    assert "whoever operates this installation decides" in told


def test_whatever_others_wrote_is_written_out_and_never_obeyed() -> None:
    operation = operation_in(
        Phase.ACCEPTED,
        tenant_id=HOSTILE,
        operation_key=HOSTILE,
        provider=HOSTILE,
        remote_status=HOSTILE,
        remote_job_id=RemoteJobId(HOSTILE),
        unit=HOSTILE,
    )
    row = dispatch(
        outcome=Outcome.UNCERTAIN,
        reply=HOSTILE.encode() + b"\xff",
        candidate_id=HOSTILE,
        request_ids={"x-request-id": HOSTILE},
        cause=HOSTILE,
        worker=HOSTILE,
        account=HOSTILE,
        authorised_by=HOSTILE,
        unit=HOSTILE,
    )
    waits = message(wait_reason=HOSTILE, provider=HOSTILE, visible_at=NOW - timedelta(hours=1))
    decided = [
        entry(event, HOSTILE, HOSTILE) for event in ("proven_absent", "adopted", "delivery_failed", "render_finished")
    ]
    kinds = [incident(HOSTILE, HOSTILE, HOSTILE), incident("late_remote_job", HOSTILE)]
    late = row | {"outcome": Outcome.ACCEPTED, "remote_job_id": HOSTILE + "2", "authorisation": 2}
    for each in (operation, operation_in(Phase.UNCERTAIN), operation_in(Phase.PREPARED, tenant_id=HOSTILE)):
        lines = story(each, dispatches=[row, late], messages=[waits], history=decided, incidents=kinds)
        assert [line for line in lines if any(mark in line for mark in TOLD)] == []
