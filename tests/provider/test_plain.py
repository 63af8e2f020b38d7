"""A head in its plainest form is read without h11, and read as h11 reads it: whatever is done to a reply, in whatever pieces it comes."""

from collections.abc import Sequence
from contextlib import nullcontext
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck.core.evidence import Exchange
from coatcheck.provider.plain import HEAD_LIMIT, plain_head
from coatcheck.provider.progress import Progress
from coatcheck.provider.reply import BODY_LIMIT, ReplyReader
from coatcheck.seams import Clock
from provider.rawserver import reply_of

Reading = tuple[list[tuple[object, ...]], bool]
"""The evidence after each piece and after the end, and whether the connection may be asked again."""

BODY = b'{"job_id":"job-1"}'
STATUS_LINES = (
    *(
        b"HTTP/1.1 202 Accepted",
        b"HTTP/1.1 200",
        b"HTTP/1.1 404 ",
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 204 No",
        b"HTTP/1.1 304 No",
    ),
    *(
        b"HTTP/1.1 100 Continue",
        b"HTTP/1.1 101 Up",
        b"HTTP/1.1 600 What",
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 20 OK",
        b"http/1.1 200 OK",
    ),
    *(b"HTTP/1.1 200 \xc3\xa9", b"HTTP/1.1 200 a\x00b", b"HTTP/2 200", b"HTTP/1.1 200\tOK"),
)
FIELDS = (
    *(b"Content-Length: 18", b"content-length:18", b"Content-Length: 18 ", b"Content-Length: 5", b"Content-Length: 0"),
    *(
        b"Content-Length: 18, 18",
        b"Content-Length: 99999999999999999999",
        b"Content-Length: +18",
        b"Content-Length: 0x12",
    ),
    *(
        b"Content-Length: -1",
        b"Content-Length:",
        b"Content-Length : 18",
        b" Content-Length: 18",
        b"Content-Length: 018",
        b"Content-Length:\t18\t",
        b"Content-Length: 000000000000000000018",
    ),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", b"Transfer-Encoding: 18", b"Transfer-Encoding:"),
    *(
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: Keep-Alive, close",
        b"connection: upgrade",
        b"Connection:",
    ),
    *(
        b"X: y",
        b"X:",
        b": y",
        b"X",
        b"X: \x00",
        b"X: \xe9",
        b"X: a\tb",
        b"X:\ta\t",
        b"X:\x0ba",
        b"X: a\rb",
        b" folded",
        b"\tfolded",
        b"X: a  b ",
    ),
    *(b"Content-Encoding: gzip", b"Content-Type: application/json", b"Date: Tue, 01 Dec 2026 00:00:00 GMT"),
)
UNFRAMED = [field for field in FIELDS if b"Length" not in field and b"length" not in field and b"chunked" not in field]
"""What may stand beside a length and leaves some of it to read."""
REPLY = reply_of(BODY)
"""The usual one."""


def evidence(exchange: Exchange) -> tuple[object, ...]:
    return (
        *(exchange.stage, exchange.status, exchange.headers, exchange.body),
        *(exchange.complete, exchange.framed, exchange.failure),
    )


def read(pieces: Sequence[bytes], *, alone: bool, orderly: bool, method: str = "POST") -> Reading:
    progress = Progress(Clock())
    reader = ReplyReader(method, progress)
    found: list[tuple[object, ...]] = []
    with mock.patch("coatcheck.provider.reply.plain_head", return_value=None) if alone else nullcontext():
        for piece in pieces:
            if piece and not reader.over:
                reader.feed(piece)
            found.append(evidence(progress.exchange()))
        leaves_open = reader.leaves_open
        if not reader.over:
            reader.end("closed", orderly=orderly)
    return [*found, evidence(progress.exchange())], leaves_open


def reply_with(status_line: bytes, *fields: bytes, body: bytes = BODY) -> bytes:
    return b"".join(line + b"\r\n" for line in (status_line, *fields)) + b"\r\n" + body


def assert_h11_reads_it_alike(pieces: Sequence[bytes], *, orderly: bool, method: str) -> None:
    found, leaves_open = read(pieces, alone=False, orderly=orderly, method=method)
    judged, may_stay_open = read(pieces, alone=True, orderly=orderly, method=method)
    assert found == judged, pieces
    assert may_stay_open or not leaves_open, pieces


@pytest.mark.parametrize("status_line", STATUS_LINES)
def test_h11_reads_each_status_line_alike(status_line: bytes) -> None:
    for field in FIELDS:
        for body in (b"", BODY, BODY + b"more"):
            reply = reply_with(status_line, b"Content-Length: %d" % len(BODY), field, body=body)
            assert_h11_reads_it_alike([reply], orderly=True, method="GET")


@pytest.mark.parametrize("first", FIELDS)
def test_h11_reads_each_two_fields_alike(first: bytes) -> None:
    for second in FIELDS:
        for end in (len(BODY), len(BODY) - 1):
            reply = reply_with(STATUS_LINES[0], first, second, body=BODY[:end])
            assert_h11_reads_it_alike([reply], orderly=False, method="POST")


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    """The usual one with a field or two more, and now and then with a few bytes that should not be there or are missing."""
    more = draw(st.lists(st.sampled_from(UNFRAMED), max_size=2))
    fields = draw(st.permutations([b"Content-Length: %d" % len(BODY), *more]))
    reply = reply_with(STATUS_LINES[0], *fields, body=draw(st.sampled_from((BODY, BODY[:9], BODY + b"more"))))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(reply)))
        reply = reply[:at] + draw(st.binary(max_size=2)) + reply[at + draw(st.integers(0, 2)) :]
    return reply


@given(
    reply=replies(),
    cuts=st.lists(st.integers(0, 200), max_size=3),
    orderly=st.booleans(),
    method=st.sampled_from(("GET", "POST", "DELETE")),
)
@example(reply=REPLY, cuts=[len(REPLY) - 4], orderly=True, method="GET")
@example(reply=REPLY + b"more", cuts=[], orderly=True, method="GET")
@example(reply=b"HTTP/1.1 100 Continue\r\n\r\n" + REPLY, cuts=[], orderly=True, method="POST")
@example(reply=reply_of(b" " * (BODY_LIMIT + 1)), cuts=[100, 200], orderly=True, method="POST")
def test_h11_reads_it_alike_however_it_comes(reply: bytes, cuts: list[int], orderly: bool, method: str) -> None:
    ends = sorted({*cuts, len(reply)})
    pieces = [reply[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    assert_h11_reads_it_alike(pieces, orderly=orderly, method=method)


def test_the_usual_reply_needs_no_h11() -> None:
    with mock.patch("coatcheck.provider.reply._judge_of", side_effect=AssertionError):
        found, leaves_open = read([REPLY[:-1], REPLY[-1:]], alone=False, orderly=True)
    assert found[0][1] == 202
    assert found[-1][3:] == (BODY, True, True, None)
    assert leaves_open


@pytest.mark.parametrize(
    "field",
    [
        *(b"Content-Length: 18", b"Content-Length: 1", b"Transfer-Encoding: chunked", b"Transfer-Encoding: 18"),
        *(b"X: \xe9", b"X: a\rb", b" folded", b"X : y"),
    ],
)
def test_what_could_be_read_otherwise_is_left_to_h11(field: bytes) -> None:
    assert plain_head(REPLY) is not None
    assert plain_head(REPLY.replace(b"\r\n", b"\r\n" + field + b"\r\n", 1)) is None


@pytest.mark.parametrize(
    ("part", "other", "is_plain"),
    [
        *(
            (b" 202 ", b" 200 ", True),
            (b" 202 ", b" 599 ", True),
            (b" 202 ", b" 199 ", False),
            (b" 202 ", b" 600 ", False),
        ),
        *((b": 18\r", b":18\t\r", True), (b": 18\r", b": %018d\r" % 18, True), (b": 18\r", b": %019d\r" % 18, False)),
    ],
)
def test_the_plainest_form_has_its_bounds(part: bytes, other: bytes, is_plain: bool) -> None:
    assert REPLY.count(part) == 1
    assert (plain_head(REPLY.replace(part, other)) is not None) is is_plain


@pytest.mark.parametrize("field", [b"Connection: keep-alive", b"connection:Keep-Alive\t", b"X: close"])
def test_a_sender_that_goes_on_is_asked_again(field: bytes) -> None:
    head = plain_head(REPLY.replace(b"\r\n", b"\r\n" + field + b"\r\n", 1))
    assert head is not None
    assert head.leaves_open


@pytest.mark.parametrize(
    "field", [b"Connection: close", b"Connection: keep-alive\r\nConnection: close", b"Connection: x"]
)
def test_a_sender_that_closes_is_not_asked_again(field: bytes) -> None:
    head = plain_head(REPLY.replace(b"\r\n", b"\r\n" + field + b"\r\n", 1))
    assert head is not None
    assert not head.leaves_open


def test_a_head_of_any_size_is_left_to_h11_which_bounds_it() -> None:
    def padded(size: int) -> bytes:
        return REPLY.replace(b"\r\n", b"\r\nX: " + b"y" * size + b"\r\n", 1)

    rest = len(padded(0)) - len(BODY)
    assert plain_head(padded(HEAD_LIMIT - rest)) is not None
    assert plain_head(padded(HEAD_LIMIT - rest + 1)) is None
