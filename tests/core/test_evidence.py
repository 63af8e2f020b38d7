"""What is kept of a reply for whoever decides later: a candidate that proves nothing, ids for the service's support, and never a key."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.candidate import SCANNED_BYTES, candidate_id
from coatcheck.core.classify import Rules, classify
from coatcheck.core.events import Accepted, Doubted, FailedWithId
from coatcheck.core.evidence import REQUEST_ID_LIMIT, REQUEST_IDS, Exchange, Stage, request_ids
from coatcheck.core.foreign import usable_id
from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.core.redact import redacted

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=1))
RULES = Rules(id_path=("job_id",), failure_id_path=("error", "job_id"))
PLACES = (RULES.id_path, RULES.failure_id_path)
KEY = 'sk/live-3b1f"é'


def seen(status: int = 201, body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> Exchange:
    return Exchange(
        stage=Stage.BODY_RECEIVED,
        bytes_sent=200,
        bytes_received=150,
        status=status,
        headers=headers,
        body=body,
        complete=True,
        framed=True,
    )


# -- candidates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("escaped", [b"job-17", b"job\\u002d17", b'a\\"b\\\\c', "jöb".encode()])
@pytest.mark.parametrize(
    ("status", "before", "after"),
    [
        (201, b'{"status":"queued","job_id" : ', b',"n":[1,{"x":"y"}]}'),
        (502, b'{"error":{"code":"x","job_id":', b'},"message":"late"}'),
    ],
)
def test_a_candidate_appears_exactly_when_its_literal_is_whole(
    status: int, before: bytes, after: bytes, escaped: bytes
) -> None:
    literal = b'"' + escaped + b'"'
    body = before + literal + after
    named = RemoteJobId(json.loads(literal))
    for at in range(len(body) + 1):
        cut = replace(seen(status, body[:at]), complete=False, failure="closed")
        reply = classify(cut, dispatch_id=DISPATCH, rules=RULES, now=NOW)
        shown = named if at >= len(before) + len(literal) else None
        assert reply == Doubted(dispatch_id=DISPATCH, cause="closed", candidate=shown), body[:at]
    whole = classify(seen(status, body), dispatch_id=DISPATCH, rules=RULES, now=NOW)
    assert isinstance(whole, Accepted | FailedWithId)
    assert whole.remote_job_id == named


@pytest.mark.parametrize(
    ("body", "candidate"),
    [
        (b'{"job_id":"a","job_id":"b"', "a"),
        (b'{"job_id":"","job_id":"b"', "b"),
        (b'[{"job_id":"a"', "a"),
        (b'\xef\xbb\xbf{"x":"\xff","job_id":"a"', "a"),
        (b'{"parent":{"job_id":"other"},"sta', None),
        (b'{"parent":{"job_id":"other"},"job_id":"own"', "own"),
        (b'{"say":"\\"job_id\\":\\"other\\"","x', None),
        (b'{"say":"{\\"job_id\\": ", "x": "job_id"', None),
        (b'{"job_id":["a"],', None),
        (b'{"a":["job_id","b"],', None),
        (b'{"job_id":17,"x":"a"', None),
        (b'{"job_id":"a\nb"', None),
        (b'{"job_id":"' + b"x" * 513 + b'"', None),
        (b'"job_id":"a"', None),
        (b"<html>job_id: a</html>", None),
        (b'}]}{"job_id":"a"', "a"),
        (b'{"error":{"job_id":"a"', "a"),
        (b'{"error":[{"error":{"job_id":"a"', None),
    ],
)
def test_only_a_usable_string_at_the_place_of_the_adapter_is_a_candidate(body: bytes, candidate: str | None) -> None:
    assert candidate_id(body, PLACES) == candidate


def test_a_body_is_searched_up_to_a_bound() -> None:
    long = b'{"x":"' + b"y" * SCANNED_BYTES + b'","job_id":"a"}'
    assert candidate_id(long, PLACES) is None
    assert candidate_id(b"[" * 100_000 + b'{"job_id":"a"', PLACES) is None


@given(st.binary() | st.lists(st.sampled_from([b'"', b"{", b"}", b"[", b"]", b":", b",", b"\\", b'"job_id"', b'"a"'])))
def test_whatever_is_searched_the_answer_is_a_usable_id_or_none(parts: bytes | list[bytes]) -> None:
    found = candidate_id(parts if isinstance(parts, bytes) else b"".join(parts), PLACES)
    assert found is None or usable_id(found) == found


# -- request ids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *(
            "X-Request-Id",
            "request-id",
            "X-Correlation-ID",
            "CF-Ray",
            "x-amzn-RequestId",
            "x-amz-cf-id",
            "X-Amzn-Trace-Id",
        ),
        *(
            "x-goog-request-id",
            "openai-request-id",
            "x-fal-request-id",
            "apim-request-id",
            "x-ms-request-id",
            "traceparent",
        ),
    ],
)
def test_what_names_a_request_is_kept_by_its_name_in_lower_case(name: str) -> None:
    assert request_ids(seen(headers=(("Content-Type", "a"), (name, " r-1 "))), KEY) == {name.lower(): "r-1"}


@pytest.mark.parametrize(
    "name",
    ["Set-Cookie", "X-Request-Id-Token", "X-Requested-With", "Location", "request-identity", "x" * 60 + "-request-id"],
)
def test_no_other_header_is_kept(name: str) -> None:
    assert request_ids(seen(headers=((name, "r-1"),)), KEY) == {}


def test_request_ids_are_bounded_in_number_and_length_and_print() -> None:
    many = tuple((f"h{number}-request-id", f"\x1b[2J\x00{number}" + "r" * 999) for number in range(20))
    kept = request_ids(seen(headers=many), KEY)
    assert list(kept) == [f"h{number}-request-id" for number in range(REQUEST_IDS)]
    assert all(len(value) == REQUEST_ID_LIMIT and value.isprintable() for value in kept.values())
    assert request_ids(seen(headers=(("request-id", "\x00 "), ("Request-Id", "b"), ("request-id", "c"))), KEY) == {
        "request-id": "b"
    }


@pytest.mark.parametrize("echo", ["{}", "Bearer {}", "r\x00-{}-1", "x" * 195 + "{}"])
def test_a_key_in_a_request_id_is_masked(echo: str) -> None:
    (value,) = request_ids(seen(headers=(("x-request-id", echo.format("canary-key-1")),)), "canary-key-1").values()
    assert "canary" not in value
    assert "[red" in value


# -- redaction ---------------------------------------------------------------------------------------------------------

FORMS = {
    "plain": KEY.encode(),
    "percent": quote(KEY, safe="").encode(),
    "json": json.dumps(KEY)[1:-1].encode(),
    "json slashes": json.dumps(KEY)[1:-1].replace("/", "\\/").encode(),
    "base64": base64.b64encode(KEY.encode()),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_echo_of_the_key_is_masked_whole_or_cut(form: str) -> None:
    echo = FORMS[form]
    assert redacted(b'{"k":"' + echo + b'"}', KEY) == b'{"k":"[redacted]"}'
    for length in range(4, len(echo)):
        assert redacted(b"key " + echo[:length], KEY) == b"key [redacted]", length


def test_what_is_too_short_to_be_told_from_text_stays() -> None:
    assert redacted(b"abc", "abc") == b"abc"
    assert redacted(b"the sk", "sk-live") == b"the sk"
    assert redacted(b"", "sk-live") == b""
