"""The Genace adapter, value in and value out: what it makes of everything that a service can say."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.config import load_settings
from coatcheck.core.events import Accepted, Credits, Output, Rejected, Snapshot
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import DispatchId, RemoteJobId, RenderState
from coatcheck.provider.genace import STATUS_WORDS, Genace
from coatcheck.provider.port import Absent, Adapter, Denied, Look, Nonsense, Seen, StillWaiting, Transient
from provider.genaces import genace

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=3))
ID = RemoteJobId("job-1")
SHA = "ab" * 32
URL = "https://cdn.example.com/o/1.png?sig=x"
ADAPTER: Adapter = genace()


def came(status: int, body: object = b"", **headers: str) -> Exchange:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Exchange(
        stage=Stage.BODY_RECEIVED,
        bytes_sent=9,
        bytes_received=9,
        status=status,
        headers=named,
        body=data,
        complete=True,
        framed=True,
    )


def seen(exchange: Exchange, **changes: Any) -> Look:
    return genace(**changes).seen(exchange, remote_job_id=ID, now=NOW)


def snapshot(**more: object) -> Snapshot:
    look = seen(came(200, {"id": "job-1", "status": "succeeded", **more}))
    assert isinstance(look, Seen)
    return look.snapshot


def test_the_settings_make_the_adapter_and_their_words_stand_over_the_defaults() -> None:
    prefix = "COATCHECK_PROVIDERS__GENACE__"
    environment: Mapping[str, str] = {
        prefix + "BASE_URL": "http://127.0.0.1:9",
        prefix + "API_KEY": "k",
        prefix + "STATUS_WORDS": '{"Dreaming": "rendering", "complete": "failed"}',
    }
    adapter = Genace.configured(load_settings(environment).providers["genace"], version="9")
    assert adapter.create(b"", dispatch_id=DISPATCH).url == "http://127.0.0.1:9/api/v1/jobs"
    assert ("User-Agent", "coatcheck/9") in adapter.create(b"", dispatch_id=DISPATCH).headers
    for word, state in (
        ("dreaming", RenderState.RENDERING),
        ("complete", RenderState.FAILED),
        ("queued", RenderState.QUEUED),
    ):
        look = adapter.seen(came(200, {"id": "job-1", "status": word}), remote_job_id=ID, now=NOW)
        assert isinstance(look, Seen)
        assert look.snapshot.render_state is state


# -- how the POST ended ------------------------------------------------------------------------------------------------


def reply_snapshot(**body: object) -> Snapshot | None:
    reply = ADAPTER.reply(came(201, {"job_id": "job-1", **body}), dispatch_id=DISPATCH, now=NOW)
    assert isinstance(reply, Accepted)
    assert reply.remote_job_id == ID
    return reply.snapshot


def test_a_reply_that_is_already_final_carries_its_snapshot() -> None:
    found = reply_snapshot(status="completed", outputs=[URL], credits={"charged": 5})
    assert found == Snapshot(
        remote_job_id=ID,
        remote_status="completed",
        render_state=RenderState.SUCCEEDED,
        outputs=(Output(index=0, url=URL),),
        credits=Credits(charged=Decimal(5)),
    )
    failed = reply_snapshot(id="job-1", status="failed", error={"code": "nsfw_input"})
    assert failed is not None
    assert failed.error_code == "nsfw_input"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"status": "queued"},
        {"status": "dreaming"},
        {"status": "succeeded"},
        {"status": "succeeded", "outputs": ["nonsense"]},
        {"status": "failed", "id": "another"},
        {"status": 7},
    ],
)
def test_a_reply_that_is_not_final_leaves_the_rest_to_the_first_look(body: dict[str, object]) -> None:
    assert reply_snapshot(**body) is None


def test_throttling_can_be_made_a_doubt() -> None:
    assert ADAPTER.reply(came(429), dispatch_id=DISPATCH, now=NOW).kind == "throttled"
    switched = genace(throttled_is_uncertain=True)
    assert switched.reply(came(429), dispatch_id=DISPATCH, now=NOW).kind == "doubted"
    assert ADAPTER.reply(came(422), dispatch_id=DISPATCH, now=NOW) == Rejected(dispatch_id=DISPATCH, status=422)


# -- what a look brought back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "state"), [*STATUS_WORDS.items(), ("SUCCEEDED", RenderState.SUCCEEDED), ("aborted", None), ("s u", None)]
)
def test_status_words_are_read_and_kept_verbatim(word: str, state: RenderState | None) -> None:
    look = seen(came(200, {"id": "job-1", "status": word}))
    assert isinstance(look, Seen)
    assert look.snapshot.render_state is state
    assert look.snapshot.remote_status == word


@pytest.mark.parametrize(
    ("exchange", "look"),
    [
        (came(202), StillWaiting()),
        (came(202, {"status": "rendering"}), StillWaiting()),
        (came(204), StillWaiting()),
        (came(304), StillWaiting()),
        (came(408, b"<html>"), StillWaiting()),
        (came(202, b"", Retry_After="4"), StillWaiting(retry_after_s=4.0)),
        (came(202, {"id": "other", "status": "queued"}), Nonsense(kind="wrong_id", detail="id")),
        (came(401), Denied(status=401)),
        (came(402), Denied(status=402)),
        (came(403), Denied(status=403)),
        (came(404, {"id": "job-1", "status": "succeeded"}), Absent()),
        (came(410), Absent()),
        (came(302), Transient(cause="status_302")),
        (came(400), Transient(cause="status_400")),
        (came(429, b"", Retry_After="400"), Transient(cause="status_429", retry_after_s=300.0)),
        (came(500, {"id": "job-1", "status": "failed"}), Transient(cause="status_500")),
        (came(502, b"<html>"), Transient(cause="status_502")),
        (came(503, b"", Retry_After="soon"), Transient(cause="status_503")),
        (came(200), Transient(cause="empty")),
        (came(200, b"<html>502</html>"), Transient(cause="not_json")),
        (came(200, b'{"id":"job-1","sta'), Transient(cause="not_json")),
        (came(200, b"\xff"), Transient(cause="not_utf8")),
        (came(200, b'{"id":"job-1","id":"job-1","status":"queued"}'), Nonsense(kind="malformed", detail="duplicate_key")),
        (came(200, b'{"id":"job-1","status":NaN}'), Nonsense(kind="malformed", detail="not_finite")),
        (came(200, {"id": "job-2", "status": "succeeded"}), Nonsense(kind="wrong_id", detail="id")),
        (came(200, {"id": "JOB-1", "status": "succeeded"}), Nonsense(kind="wrong_id", detail="id")),
        (came(200, {"id": 1, "status": "succeeded"}), Nonsense(kind="malformed", detail="id")),
        (came(200, {"job_id": "job-1", "status": "succeeded"}), Nonsense(kind="malformed", detail="id")),
        (came(200, ["job-1"]), Nonsense(kind="malformed", detail="id")),
        (came(200, {"id": "job-1"}), Nonsense(kind="malformed", detail="status")),
        (came(200, {"id": "job-1", "status": ""}), Nonsense(kind="malformed", detail="status")),
        (came(200, {"id": "job-1", "status": "a\x00"}), Nonsense(kind="malformed", detail="status")),
        (came(200, {"id": "job-1", "status": "x" * 201}), Nonsense(kind="malformed", detail="status")),
        (came(200, {"id": "job-1", "status": ["succeeded"]}), Nonsense(kind="malformed", detail="status")),
        (came(200, {"id": "job-1", "status": "succeeded", "outputs": [URL] * 101}), Nonsense(kind="malformed", detail="too_many_outputs")),
        (Exchange(stage=Stage.CONNECTING, failure="refused"), Transient(cause="refused")),
        (replace(came(200, {"id": "job-1", "status": "failed"}), complete=False, failure="closed"), Transient(cause="closed")),
        (replace(came(404), complete=False), Transient(cause="cut")),
    ],
)  # fmt: skip
def test_each_answer_to_a_look_means_one_thing(exchange: Exchange, look: Look) -> None:
    assert seen(exchange) == look


def test_nesting_beyond_every_measure_is_nonsense() -> None:
    look = seen(came(200, b"[" * 99_999 + b"]" * 99_999))
    assert isinstance(look, Nonsense)
    assert look.kind == "malformed"


@pytest.mark.parametrize("status", [200, 201, 202, 203])
def test_a_whole_snapshot_is_seen_also_where_the_status_closes_the_window(status: int) -> None:
    look = seen(came(status, {"id": "job-1", "status": "rendering"}, Retry_After="3"))
    assert isinstance(look, Seen)
    assert look.retry_after_s == 3.0


def test_which_statuses_close_the_window_is_a_setting() -> None:
    assert seen(came(408), closed_statuses=frozenset({504})) == Transient(cause="status_408")
    assert seen(came(504), closed_statuses=frozenset({504})) == StillWaiting()
    assert seen(came(204), closed_statuses=frozenset({504})) == Transient(cause="empty")


@pytest.mark.parametrize(
    ("item", "output"),
    [
        (URL, Output(index=0, url=URL)),
        ({"url": URL}, Output(index=0, url=URL)),
        (
            {"url": URL, "type": "image/png", "size": 12, "sha256": SHA.upper()},
            Output(index=0, url=URL, content_type="image/png", bytes=12, sha256=SHA),
        ),
        (
            {"url": URL, "content_type": "video/mp4; codecs=x", "bytes": 0, "type": "video", "size": 9},
            Output(index=0, url=URL, content_type="video/mp4; codecs=x", bytes=0),
        ),
        (
            {"url": URL, "content_type": "image", "bytes": "12", "sha256": "abc", "type": ["a/b"], "size": -1},
            Output(index=0, url=URL),
        ),
        ({"url": URL, "bytes": True, "type": "a/b\n", "size": 2**63, "sha256": 7}, Output(index=0, url=URL)),
        ("http://[::1]:8/a", Output(index=0, url="http://[::1]:8/a")),
    ],
)
def test_an_output_keeps_what_is_valid_and_drops_the_rest(item: object, output: Output) -> None:
    assert snapshot(outputs=[item]).outputs == (output,)


@pytest.mark.parametrize(
    "outputs",
    [
        None,
        "https://a.example/x",
        {"url": URL},
        7,
        [],
        [None],
        [""],
        [{}],
        [{"url": None}],
        [{"url": [URL]}],
        [["https://a.example"]],
        ["ftp://a.example/x"],
        ["//a.example/x"],
        ["/relative"],
        ["javascript:alert(1)"],
        ["data:image/png;base64,AA"],
        ["file:///etc/passwd"],
        ["http://"],
        ["http://[::1/x"],
        ["http://a.example:99999/"],
        ["http://a.example/\r\nX: y"],
        ["http://a.example/\ud800"],
        ["http://a.example/" + "x" * 4096],
    ],
)
def test_what_cannot_be_fetched_is_no_output(outputs: object) -> None:
    assert snapshot(outputs=outputs).outputs == ()


def test_a_bad_output_leaves_the_others_in_their_places() -> None:
    assert [output.index for output in snapshot(outputs=[URL, "nonsense", URL]).outputs] == [0, 2]


@pytest.mark.parametrize(
    ("outputs", "count"),
    [
        ([], 0),
        ([URL, {"url": URL}], 0),
        ([URL, None, {"url": "ftp://host/1"}, URL, {"href": URL}], 3),
        ([7], 1),
        (None, 0),
        ("soon", 0),
    ],
)
def test_outputs_that_are_listed_and_unusable_are_counted(outputs: object, count: int) -> None:
    assert snapshot(outputs=outputs).unusable_count == count


def test_a_reply_with_an_unusable_output_is_left_to_the_first_look_which_notes_it() -> None:
    assert reply_snapshot(status="succeeded", outputs=[URL, "nonsense"]) is None


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        ({"charged": 5}, Credits(charged=Decimal(5))),
        ({"charged": 0.1, "refunded": 0}, Credits(charged=Decimal("0.1"))),
        ({"charged": "12.50", "refunded": "2.5", "unit": "usd"}, Credits(charged=Decimal("12.50"), refunded=Decimal("2.5"), unit="usd")),
        ({"charged": 5, "refunded": None, "unit": 7}, Credits(charged=Decimal(5))),
        ({"charged": 5, "refunded": 5}, Credits(charged=Decimal(5), refunded=Decimal(5))),
        ({}, None),
        (None, None),
        ("5", None),
        ([5], None),
        ({"charged": True}, None),
        ({"charged": -1}, None),
        ({"charged": "1e3"}, None),
        ({"charged": "5 credits"}, None),
        ({"charged": 10**12}, None),
        ({"charged": 1e300}, None),
        ({"charged": 1e-30}, None),
        ({"charged": 5, "refunded": "lots"}, None),
        ({"charged": 5, "refunded": 6}, None),
        ({"refunded": 1}, None),
    ],
)  # fmt: skip
def test_an_account_is_believed_whole_or_not_at_all(account: object, expected: Credits | None) -> None:
    assert snapshot(credits=account).credits == expected


@pytest.mark.parametrize(
    ("error", "code"),
    [({"code": "nsfw"}, "nsfw"), ({"code": 42}, "42"), ({"code": True}, None), ({"code": "x" * 201}, None), ("nsfw", None), (None, None), ({"code": ""}, None)],
)  # fmt: skip
def test_an_error_code_is_kept_when_it_is_one(error: object, code: str | None) -> None:
    assert snapshot(error=error).error_code == code


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([URL, "job-1", "succeeded", SHA]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["url", "code", "charged", "refunded", "type", "bytes"]), inner)
    ),
    max_leaves=8,
)
hostile = st.fixed_dictionaries(
    {"id": st.just("job-1") | values, "status": st.just("succeeded") | values},
    optional={"outputs": values | st.lists(values), "error": values, "credits": values, "job_id": values},
)


@given(st.integers(100, 599), hostile.map(lambda body: json.dumps(body).encode()) | st.binary(), st.booleans())
def test_no_snapshot_however_hostile_breaks_the_reader(status: int, body: bytes, complete: bool) -> None:
    exchange = replace(came(status, body), complete=complete)
    look = seen(exchange)
    assert isinstance(look, Seen | StillWaiting | Transient | Absent | Denied | Nonsense)
    if isinstance(look, Seen):
        assert complete
        assert look.snapshot.remote_job_id == ID
        assert len(look.snapshot.outputs) <= 100
    assert ADAPTER.reply(exchange, dispatch_id=DISPATCH, now=NOW).dispatch_id == DISPATCH
