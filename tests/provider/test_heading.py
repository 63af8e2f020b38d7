"""Heads of requests: what h11 would write, and of what it wrote before only what is new is looked at."""

from unittest import mock

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.provider.heading import fields
from coatcheck.provider.origin import split_url

ORIGIN, _ = split_url("https://service.example:8443")
USUAL = (("Authorization", "Bearer secret-key"), ("Content-Type", "application/json"), ("X-Empty", ""))
Headers = tuple[tuple[str, str], ...]


def written(headers: Headers) -> bytes | None:
    """By h11, without the request line and the empty one; None for what it refuses."""
    try:
        request = h11.Request(method="POST", target="/", headers=[("Host", ORIGIN.authority), *headers])
        sent = h11.Connection(h11.CLIENT).send(request) or b""
    except (h11.LocalProtocolError, ValueError):
        return None
    return sent.partition(b"\r\n")[2].removesuffix(b"\r\n")


def found(headers: Headers) -> bytes | None:
    try:
        return fields(ORIGIN, headers, is_last=False)
    except ValueError:
        return None


@pytest.mark.parametrize(
    "headers", [(), USUAL, USUAL[::-1], (("x-lower", "a\tb  c"), ("X-Lower", "~"), ("x-lower", "a\tb  c"))]
)
def test_the_lines_are_h11s(headers: Headers) -> None:
    assert fields(ORIGIN, headers, is_last=False) == written(headers)
    assert fields(ORIGIN, headers, is_last=True) == written((*headers, ("Connection", "close")))


NAMES = st.text(st.sampled_from("Xx-_:. \t\r\n\x00\x7f\xe9"), max_size=3) | st.sampled_from(("Host", "host", "Expect"))
VALUES = st.text(st.sampled_from("aZ09~ \t\r\n\x00\x0b\x7f\x80\xe9\u20ac"), max_size=4)


@given(headers=st.lists(st.tuples(NAMES, VALUES), max_size=3).map(tuple))
def test_whatever_h11_refuses_is_refused(headers: Headers) -> None:
    assert found(headers) == written(headers)


@pytest.mark.parametrize(
    "header",
    [
        *(
            ("Content-Length", "2"),
            ("content-length", "2"),
            ("Transfer-Encoding", "chunked"),
            ("TRANSFER-ENCODING", "chunked"),
        ),
        *(("Host", "other.example"), ("X", "a\r\nY: b"), ("X: Y", "a"), ("X", " a"), ("X", "\u20ac"), ("", "a")),
    ],
)
def test_what_frames_a_body_or_breaks_a_head_is_refused_each_time(header: tuple[str, str]) -> None:
    """In words of ours alone: a header may be a credential."""
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^expected (headers|a body) that [\w/. ]+$"):
            fields(ORIGIN, (*USUAL, header), is_last=True)


def test_of_a_head_with_a_line_of_its_own_only_that_line_is_looked_at() -> None:
    """Also where an account has sent more of them than are kept."""

    def posted(number: int) -> tuple[str, str]:
        reference = ("X-Client-Reference", str(number))
        fields(ORIGIN, (*USUAL, reference), is_last=True)
        return reference

    posted(0)
    with mock.patch("h11.Request", wraps=h11.Request) as request:
        references = [posted(number) for number in range(1, 1_000)]
    assert [call.kwargs["headers"][-1] for call in request.call_args_list] == references
