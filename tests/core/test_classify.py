"""The table of what one reply proves: every status, every kind of body, and nothing else that could decide."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck.core.classify import STATUS_LIST, Rules, Verdict, classify
from coatcheck.core.events import Accepted, Doubted, FailedWithId, NotSent, Rejected, Reply, Throttled
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.foreign import Unreadable, read_json
from coatcheck.core.operation import DispatchId, RemoteJobId

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=1))
RULES = Rules(id_path=("job_id",), failure_id_path=("error", "job_id"))
ID = RemoteJobId("job-1")
REJECTED = {400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431, 501, 307, 308}
THROTTLED = {425, 429}


def whole(status: int, body: bytes = b"{}", **headers: str) -> Exchange:
    return Exchange(
        stage=Stage.BODY_RECEIVED,
        bytes_sent=100,
        bytes_received=100,
        status=status,
        headers=tuple((name.replace("_", "-"), value) for name, value in headers.items()),
        body=body,
        complete=True,
        framed=True,
    )


def verdict(exchange: Exchange, rules: Rules = RULES) -> Reply:
    return classify(exchange, dispatch_id=DISPATCH, rules=rules, now=NOW)


def doubt(cause: str, candidate: RemoteJobId | None = None) -> Doubted:
    return Doubted(dispatch_id=DISPATCH, cause=cause, candidate=candidate)


def test_every_status_without_an_id_means_what_the_list_says() -> None:
    for status in range(600):
        reply = verdict(whole(status, b"<html>500 \x00</html>"))
        if status in REJECTED:
            assert reply == Rejected(dispatch_id=DISPATCH, status=status)
        elif status in THROTTLED:
            assert reply == Throttled(dispatch_id=DISPATCH, retry_after_s=None)
        else:
            assert isinstance(reply, Doubted), status


def test_the_list_holds_exactly_the_statuses_of_the_design() -> None:
    assert {status for status, kind in STATUS_LIST.items() if kind is Verdict.REJECTED} == REJECTED
    assert {status for status, kind in STATUS_LIST.items() if kind is Verdict.THROTTLED} == THROTTLED


@pytest.mark.parametrize("status", [*range(300, 600, 7), 400, 401, 422, 429, 500, 502, 503, 504, 307])
def test_any_failure_that_names_its_job_is_saved_whatever_its_status(status: int) -> None:
    reply = verdict(whole(status, b'{"error":{"job_id":"job-1"}}'))
    assert reply == FailedWithId(dispatch_id=DISPATCH, remote_job_id=ID)


@pytest.mark.parametrize("status", range(200, 300, 9))
def test_any_success_that_names_its_job_is_accepted(status: int) -> None:
    assert verdict(whole(status, b'{"job_id":"job-1"}')) == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)


@pytest.mark.parametrize(
    ("body", "cause", "candidate"),
    [
        (b"", "empty", None),
        (b"<html></html>", "not_json", None),
        (b'{"job_id":"job-1"', "not_json", ID),
        (b'{"job_id":"job-1","job_id":"job-2"}', "duplicate_key", ID),
        (b'{"job_id":"job-1","x":NaN}', "not_finite", ID),
        (b'{"job_id":"\xff"}', "not_utf8", None),
        (b"{}", "no_id", None),
        (b'{"job_id":null}', "no_id", None),
        (b'{"id":"job-1"}', "no_id", None),
        (b'["job_id"]', "no_id", None),
        (b'{"error":{"job_id":"job-1"}}', "no_id", ID),
        (b'{"job_id":17}', "unusable_id", None),
        (b'{"job_id":""}', "unusable_id", None),
        (b'{"job_id":"a\\u0000"}', "unusable_id", None),
        (b'{"job_id":"\\ud800"}', "unusable_id", None),
        (b'{"job_id":"' + b"x" * 513 + b'"}', "unusable_id", None),
        (b'{"job_id":["job-1"]}', "unusable_id", None),
    ],
)
def test_a_success_without_a_usable_id_is_doubt(body: bytes, cause: str, candidate: RemoteJobId | None) -> None:
    assert verdict(whole(202, body)) == doubt(cause, candidate)


def test_nesting_beyond_every_measure_is_doubt() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert isinstance(verdict(whole(202, b'{"job_id":"job-1","x":' + deep + b"!}")), Doubted)
    assert isinstance(verdict(whole(202, deep)), Doubted)


@pytest.mark.parametrize("body", [b'{"job_id":"job-1"}', b'{"error":{"job_id":17}}', b'{"error":"job-1"}'])
def test_a_refusal_whose_id_stands_elsewhere_or_is_unusable_is_read_by_its_status(body: bytes) -> None:
    assert verdict(whole(422, body)) == Rejected(dispatch_id=DISPATCH, status=422)
    shown = ID if body == b'{"job_id":"job-1"}' else None
    assert verdict(whole(500, body)) == doubt("status_500", shown)


@pytest.mark.parametrize("status", [202, 400, 422, 429, 502])
@pytest.mark.parametrize("body", [b"", b'{"error":{"job_id":"job-1"}}', b'{"job_id":"job-1"}', b'{"err'])
def test_a_reply_that_did_not_arrive_whole_is_doubt_whatever_its_status_says(status: int, body: bytes) -> None:
    cut = replace(whole(status, body), complete=False, failure="closed", stage=Stage.STATUS_RECEIVED)
    assert verdict(cut) == doubt("closed", ID if b"job-1" in body else None)


@pytest.mark.parametrize("status", sorted(REJECTED | THROTTLED))
@pytest.mark.parametrize(
    "body", [b'{"error":{"job_id":"job-', b'{"error":{"job_id":"job-1"}', b"<html>", b"refused", b" "]
)
def test_a_refusal_that_only_the_end_of_the_connection_delimits_must_be_readable(status: int, body: bytes) -> None:
    assert verdict(replace(whole(status, body), framed=False)) == doubt("unframed", ID if b"job-1" in body else None)


@pytest.mark.parametrize("status", sorted(REJECTED | THROTTLED))
@pytest.mark.parametrize("body", [b"", b"{}", b'{"error":{"code":"bad_size"}}'])
def test_an_empty_or_readable_refusal_needs_no_framing(status: int, body: bytes) -> None:
    assert verdict(replace(whole(status, body), framed=False)) == verdict(whole(status, body))


def test_an_id_that_was_read_needs_no_framing() -> None:
    accepted, failed = b'{"job_id":"job-1"}', b'{"error":{"job_id":"job-1"}}'
    assert verdict(replace(whole(202, accepted), framed=False)) == Accepted(dispatch_id=DISPATCH, remote_job_id=ID)
    assert verdict(replace(whole(422, failed), framed=False)) == FailedWithId(dispatch_id=DISPATCH, remote_job_id=ID)


@pytest.mark.parametrize("failure", ["refused", "name_unknown", "tls_failed", "send_window_passed", None])
def test_no_byte_sent_is_proof(failure: str | None) -> None:
    exchange = Exchange(stage=Stage.CONNECTING, failure=failure)
    assert verdict(exchange) == NotSent(dispatch_id=DISPATCH, cause=failure or "not_sent")


@pytest.mark.parametrize("stage", [Stage.HEADERS_BEGUN, Stage.BODY_SENT])
def test_one_byte_sent_without_a_reply_is_doubt(stage: Stage) -> None:
    assert verdict(Exchange(stage=stage, bytes_sent=1, failure="reset")) == doubt("reset")
    assert verdict(Exchange(stage=stage, bytes_sent=1)) == doubt("cut")


def test_evidence_that_contradicts_itself_never_allows_a_second_post() -> None:
    assert verdict(replace(whole(500), bytes_sent=0)) == doubt("status_500")
    assert verdict(Exchange(stage=Stage.BODY_SENT, bytes_received=9, failure="closed")) == doubt("closed")


def test_a_throttled_reply_waits_as_asked_within_the_cap() -> None:
    assert verdict(whole(429, Retry_After="12")) == Throttled(dispatch_id=DISPATCH, retry_after_s=12.0)
    dated = whole(429, Retry_After="Fri, 02 Jan 2026 00:00:05 GMT")
    assert verdict(dated) == Throttled(dispatch_id=DISPATCH, retry_after_s=5.0)
    assert verdict(whole(429, Retry_After="9999")) == Throttled(dispatch_id=DISPATCH, retry_after_s=300.0)
    assert verdict(whole(429, Retry_After="-4")) == Throttled(dispatch_id=DISPATCH, retry_after_s=None)


def test_one_switch_turns_throttling_into_doubt() -> None:
    rules = replace(RULES, throttled_is_uncertain=True)
    assert verdict(whole(429, Retry_After="1"), rules) == doubt("status_429")
    assert verdict(whole(425), rules) == doubt("status_425")
    assert verdict(whole(422), rules) == Rejected(dispatch_id=DISPATCH, status=422)


hints = st.fixed_dictionaries(
    {},
    optional={
        "retryable": st.booleans(),
        "message": st.sampled_from(["500", "1500x2000", "HTTP 429: resets in 30s", "not created, 422", "job_id"]),
        "code": st.integers(0, 599) | st.sampled_from(["502", "rejected", "not_sent"]),
        "created": st.booleans(),
    },
)


@given(st.integers(100, 599), hints)
def test_no_hint_in_a_body_decides_anything(status: int, hint: dict[str, object]) -> None:
    plain = verdict(whole(status, b"{}"))
    assert verdict(whole(status, json.dumps({"error": hint, **hint}).encode())) == plain


anything = st.builds(
    Exchange,
    stage=st.sampled_from(Stage),
    bytes_sent=st.integers(0, 3),
    bytes_received=st.integers(0, 3),
    status=st.none() | st.integers(0, 999),
    headers=st.lists(st.tuples(st.sampled_from(["Retry-After", "X"]), st.text())).map(tuple),
    body=st.binary() | st.sampled_from([b'{"job_id":"a"}', b'{"error":{"job_id":"a"}}', b'{"error":{"job_id":']),
    complete=st.booleans(),
    framed=st.booleans(),
    failure=st.none() | st.just("reset"),
)


@given(anything, st.booleans())
@example(Exchange(stage=Stage.BODY_RECEIVED, status=200, bytes_sent=1, complete=True, body=b"[" * 99_999), False)
def test_any_exchange_ends_in_exactly_one_event(exchange: Exchange, switch: bool) -> None:
    reply = verdict(exchange, replace(RULES, throttled_is_uncertain=switch))
    assert isinstance(reply, Accepted | FailedWithId | Rejected | Throttled | NotSent | Doubted)
    assert reply.dispatch_id == DISPATCH
    if isinstance(reply, NotSent):
        assert exchange.bytes_sent == 0
    if isinstance(reply, Accepted | FailedWithId | Rejected | Throttled):
        assert exchange.complete
    if isinstance(reply, Rejected):
        assert exchange.status in REJECTED
    if isinstance(reply, Rejected | Throttled) and not exchange.framed:
        assert not exchange.body or not isinstance(read_json(exchange.body), Unreadable)
