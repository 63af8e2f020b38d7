"""The story of an operation says what happened, what it proves, what it costs and what can be done, for every end and every phase."""

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

from app.rows import (
    OTHER,
    Row,
    dispatch,
    entry,
    incident,
    lost_reply,
    message,
    page,
    parked,
    story,
    swept,
)
from coatcheck.app.story import tell
from coatcheck.app.story.causes import _NOT_STORED, why
from coatcheck.app.story.events import _INCIDENTS
from coatcheck.app.story.waiting import _PARKS, _WAITS
from coatcheck.core.actions import ParkReason, WaitReason
from coatcheck.core.evidence import Stage
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import ECHOED, DeliveryState, Operation, Outcome, Phase, RenderState
from coatcheck.delivery.outcome import Reason
from core.operations import NOW, OPERATION, operation_in, succeeded
from docs.test_words import incident_kinds

NAME = operation_text(OPERATION)
UNCERTAIN = operation_in(Phase.UNCERTAIN)


def test_the_story_of_a_lost_reply_reads_like_a_report_of_an_accident() -> None:
    chapters = tell(UNCERTAIN, {"incidents": [], **lost_reply()}, now=NOW)
    told = "\n".join("\n  ".join((chapter.title, *chapter.lines)) + "\n" for chapter in chapters)
    assert told == (Path(__file__).parent / "lost_reply.txt").read_text()


# -- one dispatch ------------------------------------------------------------------------------------------------------

PROOF = {
    Outcome.OPEN: "under way",
    Outcome.UNCERTAIN: "The service may have made a job and may charge for it",
    Outcome.REJECTED: "named no job; by what this status means, it made none",
    Outcome.THROTTLED: "nothing was made",
    Outcome.NOT_SENT: "proven",
    Outcome.PROVEN_ABSENT: "a person established that the service made no job",
    Outcome.SUBMISSION_FAILED: 'yet named the job "job-1"',
    Outcome.ACCEPTED: 'A whole reply named the job "job-1"',
}


@pytest.mark.parametrize(("stage", "outcome"), [*product(Stage, Outcome)], ids=str)
def test_every_end_at_every_stage_is_told_with_its_proof_and_its_bytes(stage: Stage, outcome: Outcome) -> None:
    named = outcome in (Outcome.ACCEPTED, Outcome.SUBMISSION_FAILED)
    row = dispatch(stage, outcome, remote_job_id="job-1" if named else None)
    told = page(operation_in(Phase.ACCEPTED if named else Phase.UNCERTAIN), dispatches=[row])
    assert PROOF[outcome] in told
    assert told.count("\n  after ") == stage.rank
    sent = row["bytes_sent"]
    assert (f"{sent} bytes of the request" if sent else "not one byte of the request was handed") in told
    assert ("HTTP 201 (Created)" in told) == (stage.rank >= Stage.STATUS_RECEIVED.rank)
    assert told.count("  never ") == (0 if stage is Stage.BODY_RECEIVED else 1)
    assert ("a job is unlikely, but not impossible" in told) == (
        (stage, outcome) == (Stage.HEADERS_BEGUN, Outcome.UNCERTAIN)
    )
    assert not re.search(r"\bNone\b|\{|\}|datetime|Decimal|_[a-z]", told.replace(NAME, ""))


@pytest.mark.parametrize("outcome", Outcome)
def test_a_worker_that_fell_silent_proves_nothing_about_bytes(outcome: Outcome) -> None:
    told = page(UNCERTAIN, dispatches=[swept(outcome=outcome)])
    assert "How far the request got was never recorded" in told
    assert "In all" not in told
    assert "bytes" not in told


def recorded_causes() -> Iterator[str]:
    """The words that the sending and the reading of the one POST can leave as its cause."""
    source = Path(__file__).parents[2] / "src" / "coatcheck"
    places = (
        "provider/wire",
        "provider/connecting",
        "provider/reply",
        "core/classify",
        "core/foreign",
        "core/events",
        "workers/dispatch",
    )
    telling = {
        "_EndedError",
        "NotConnectedError",
        "failed",
        "end",
        "_AmbiguousError",
        "Unreadable",
        "_doubted",
        "Doubted",
        "NotSent",
    }
    for place in places:
        for node in ast.walk(ast.parse((source / f"{place}.py").read_text())):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in telling:
                    yield from words_in(*node.args, *(each.value for each in node.keywords if each.arg == "cause"))
                case (
                    ast.Assign(targets=[ast.Name(id="cause")])
                    | ast.AnnAssign(target=ast.Name(id="cause"), value=ast.expr())
                ):
                    yield from words_in(node)
                case ast.FunctionDef(name="_cause"):
                    yield from words_in(*(each for each in ast.walk(node) if isinstance(each, ast.Return)))
                case _:
                    pass


def words_in(*nodes: ast.AST) -> Iterator[str]:
    for node in nodes:
        for each in ast.walk(node):
            if (
                isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and re.fullmatch("[a-z_0-9]+", each.value)
            ):
                yield each.value


def test_every_cause_that_the_code_records_has_a_sentence() -> None:
    found = {*recorded_causes()} - {"status_"}
    assert {
        "closed",
        "refused",
        "no_id",
        "duplicate_key",
        "lease_ended",
        "mark_commit_unknown",
        "timeout",
        "cut",
    } <= found
    assert [word for word in sorted(found) if "recorded cause" in why(word)] == []
    assert why("status_502") == "the service answered HTTP 502 (Bad Gateway) and named no job"
    assert why("status_799") == "the service answered HTTP 799 and named no job"
    assert why("by\x1bhand") == 'the recorded cause is "by\\x1bhand"'
    assert why(None) == "no cause is recorded"


def test_every_word_of_the_records_has_a_sentence() -> None:
    assert {*WaitReason} <= {*_WAITS}
    assert {*ParkReason} - {*_PARKS} == {"uncertain", "missing", "stalled", "delivery_failed"}
    assert {*_NOT_STORED} == {*Reason}
    assert {*_INCIDENTS} == incident_kinds()


def test_a_job_that_the_service_itself_lists_for_the_request_was_nobodys_guess() -> None:
    row = dispatch(outcome=Outcome.ACCEPTED, remote_job_id="job-1")
    told = page(operation_in(Phase.ACCEPTED), dispatches=[row], history=[entry("adopted", "host-7-0a1b2c", ECHOED)])
    assert "the service was asked and lists its job as made for this very request" in told


def test_a_cut_reply_says_after_how_many_bytes() -> None:
    told = page(UNCERTAIN, dispatches=[dispatch(bytes_received=38)])
    assert "because its reply was cut after 38 bytes (the connection was closed before a whole reply was there)" in told


@pytest.mark.parametrize(
    ("money", "told"),
    [
        ({}, "5 credits are held for this dispatch"),
        ({"held": Decimal("0.50")}, "0.5 credits are held"),
        ({"held": Decimal(0)}, "nothing is held, because no estimate was given"),
        ({"charged": Decimal(0), "basis": "assumed", "settled_at": NOW}, "settled and costs nothing"),
        (
            {"charged": Decimal(7), "basis": "service", "settled_at": NOW},
            "7 credits are charged; that is the service's own figure",
        ),
        ({"charged": Decimal(5), "basis": "assumed", "settled_at": NOW}, "what was held counts as spent"),
    ],
)
def test_the_money_of_a_dispatch_is_told_with_its_ground(money: dict[str, object], told: str) -> None:
    assert told in page(UNCERTAIN, dispatches=[dispatch() | money])


def test_a_person_who_authorised_is_named_with_the_reason() -> None:
    first, second = (
        dispatch(outcome=Outcome.PROVEN_ABSENT),
        dispatch(number=2, authorisation=2, authorised_by="bea", dispatch_id=OTHER),
    )
    operation = operation_in(Phase.UNCERTAIN, dispatch_id=OTHER, dispatch_count=2, authorisation=2)
    history = [entry("proven_absent", "bea", "not in their list")]
    told = page(operation, dispatches=[first, second], history=history)
    assert (
        'authorisation 1, which the application gave by enqueueing the operation, as the database role "shop"' in told
    )
    assert 'authorisation 2, which "bea" gave at 2026-11-29 11:58:00 UTC (2 minutes ago) after proving' in told
    assert told.count('"not in their list"') == 2


def test_an_adopted_job_is_never_told_as_proven_by_a_reply() -> None:
    row = dispatch(outcome=Outcome.ACCEPTED, remote_job_id="job-1")
    told = page(operation_in(Phase.ACCEPTED), dispatches=[row], history=[entry("adopted", "ann", "in their ledger")])
    assert 'accepted, by adoption. No reply proved it: "ann" named its job' in told
    assert "A whole reply" not in told


def test_a_candidate_is_called_a_hint_and_offered_for_a_check() -> None:
    told = page(UNCERTAIN, **lost_reply())
    assert "That is a hint and no acceptance" in told
    assert f"coatcheck reconcile adopt {NAME} job-17 --reason REASON" in told
    assert "hint" not in page(
        operation_in(Phase.ACCEPTED),
        dispatches=[dispatch(outcome=Outcome.ACCEPTED, candidate_id="a", remote_job_id="job-1")],
    )


def test_hundreds_of_dispatches_that_made_nothing_are_told_in_one_line() -> None:
    rows = [dispatch(Stage.CONNECTING, Outcome.NOT_SENT, number=number) for number in range(1, 301)]
    told = story(operation_in(Phase.PREPARED, dispatch_count=300), dispatches=rows, messages=[message()])
    assert "Dispatches 1 to 295, in short" in told
    assert (
        "295 dispatches never left, which is proven; 0 the service put off. None of them made a job or costs anything."
        in told
    )
    assert len(told) < 100


def test_a_job_that_came_too_late_is_an_orphan() -> None:
    late = dispatch(outcome=Outcome.ACCEPTED, remote_job_id="job-9", displaced=True)
    told = page(
        operation_in(Phase.ABANDONED),
        dispatches=[late],
        incidents=[incident("late_remote_job")],
        history=[entry("written_off")],
    )
    assert 'Its job "job-9" came to light too late' in told
    assert "This dispatch is displaced" in told
    assert "coatcheck orphans list" in told


# -- each phase --------------------------------------------------------------------------------------------------------

SPENT = dispatch(outcome=Outcome.ACCEPTED, remote_job_id="job-1")
LATER = NOW + timedelta(seconds=70)
KNOWN = operation_in(Phase.ACCEPTED, observe_by_at=NOW + timedelta(hours=20))


@pytest.mark.parametrize(
    ("operation", "kept", "told"),
    [
        (operation_in(Phase.PREPARED), [message()], "The dispatch is due since 2026-11-29 11:59:59 UTC (1 second ago); the next free"),
        (operation_in(Phase.PREPARED), [message(visible_at=NOW - timedelta(hours=3))], "(3 hours ago) and nobody took it: is a worker"),
        (operation_in(Phase.PREPARED), [message(wait_reason="pause", wait_since_at=NOW, wait_count=1)], "goes on by itself when the account is"),
        (operation_in(Phase.PREPARED), [message(wait_reason="allowance", wait_count=9)], "9 times in a row: the tenant's allowance has no room"),
        (operation_in(Phase.PREPARED), [message(wait_reason="throttled", visible_at=LATER)], "is due at 2026-11-29 12:01:10 UTC (in 70 seconds)"),
        (operation_in(Phase.PREPARED, not_before_at=LATER), [message(visible_at=LATER)], "It must not be sent before 2026-11-29 12:01:10 UTC (in 70 seconds)."),
        (operation_in(Phase.PREPARED), [message(account_wait="cap")], "kept back by its account: as much is in flight as may be"),
        (operation_in(Phase.PREPARED), [message(wait_reason="cap", wait_count=2)], "2 times in a row: as much of its account was in flight"),
        (KNOWN, [message("observe", account_wait="pause")], "kept back by its account: looks at its jobs are paused"),
        (operation_in(Phase.PREPARED, dispatch_by_at=LATER), [message()], "it is cancelled by itself and costs nothing"),
        (operation_in(Phase.PREPARED), [parked("lease_count", "dispatch")], "several workers in a row took it and never reported"),
        (operation_in(Phase.PREPARED), [parked("specification", "dispatch")], "is not the text that was approved"),
        (operation_in(Phase.DISPATCHING), [message("reconcile", leased_by="w", visible_at=LATER)], "has the end of the request in hand"),
        (KNOWN, [message("observe", wait_reason="active", visible_at=LATER)], "The next look at the remote job is due at"),
        (KNOWN, [message("observe", wait_reason="denied", wait_count=3)], "as it does with a wrong key"),
        (operation_in(Phase.ACCEPTED, observe_by_at=NOW), [parked("stalled", "observe")], "looked at for too long and set aside"),
        (operation_in(Phase.ACCEPTED, render_state=RenderState.MISSING), [parked("missing", "observe")], "may have been deleted"),
        (operation_in(Phase.SUBMISSION_FAILED), [message("observe")], "answered the request with an error and yet named this job"),
        (operation_in(Phase.ACCEPTED, render_state=RenderState.MODERATED, final_at=NOW), [], "withholds it for its content"),
        (succeeded(), [message("deliver", 1, wait_reason="delivery_failed", wait_count=2)], "The delivery of output 0 waits, 2 times in a row"),
        (operation_in(Phase.REJECTED), [], "Nothing is sent again by itself"),
        (operation_in(Phase.ABANDONED), [], "nobody looks after it any more"),
        (operation_in(Phase.CANCELLED), [], "was cancelled before anything was made"),
    ],
)  # fmt: skip
def test_every_phase_says_what_is_awaited_and_what_would_wake_it(
    operation: Operation, kept: list[Row], told: str
) -> None:
    dispatches = [SPENT] if operation.dispatch_id else []
    assert told in page(operation, dispatches=dispatches, messages=kept)


@pytest.mark.parametrize("phase", Phase)
def test_no_phase_is_told_in_code_words(phase: Phase) -> None:
    told = page(operation_in(phase), dispatches=[SPENT], messages=[message()])
    assert not re.search(r"\bNone\b|datetime|[a-z]+_[a-z]+", told.replace(NAME, ""))
    assert told.startswith(NAME)


def test_deliveries_are_told_apart_from_the_render() -> None:
    done = operation_in(
        Phase.ACCEPTED,
        render_state=RenderState.SUCCEEDED,
        delivery_state=DeliveryState.DELIVERED,
        output_count=2,
        delivered_count=2,
    )
    assert "it succeeded, and its output is delivered" in page(done)
    assert "Of 2 outputs, 2 lie whole and checked in the sink." in page(done)
    failed = operation_in(
        Phase.ACCEPTED,
        render_state=RenderState.SUCCEEDED,
        delivery_state=DeliveryState.FAILED,
        output_count=1,
        failed_count=1,
    )
    told = page(failed, history=[entry("delivery_failed", "w", "checksum_mismatch")])
    assert (
        "1 could not be fetched or stored: set aside for a person. The last cause: the output has another checksum than the service declared."
        in told
    )
    assert "fetching once more is free and never renders again" in told


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("cancelled", '"ann" cancelled it at'),
        ("deadline_passed", "the instant by which it had to be sent passed"),
        ("not_sent_and_withdrawn", "withdrawn while a request that made nothing was under way"),
    ],
)
def test_a_cancellation_says_whose_it_was(event: str, told: str) -> None:
    assert told in page(operation_in(Phase.CANCELLED), history=[entry(event)])


def test_a_wish_to_cancel_that_came_too_late_promises_nothing() -> None:
    told = page(
        operation_in(Phase.DISPATCHING, cancel_requested_at=NOW),
        messages=[message("reconcile", leased_by="w", visible_at=LATER)],
    )
    assert "that promises neither a stop nor a refund" in told
