"""Foreign JSON is read strictly and never breaks its reader."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.foreign import Unreadable, at, plain_text, read_json, usable_id


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"<html>", "not_json"),
        (b'{"job_id":"a"', "not_json"),
        (b'{"job_id":"a"} tail', "not_json"),
        (b'{"job_id":"\xff"}', "not_utf8"),
        ('{"job_id":"a"}'.encode("utf-16"), "not_utf8"),
        (b'{"job_id":"a","job_id":"a"}', "duplicate_key"),
        (b'{"error":{"job_id":"a","job_id":"b"}}', "duplicate_key"),
        (b'{"job_id":NaN}', "not_finite"),
        (b'{"job_id":-Infinity}', "not_finite"),
        (b'{"n":' + b"9" * 5_000 + b"}", "not_json"),
        (b'{"n":1e99999999999999999999}', "not_json"),
    ],
)
def test_a_text_that_two_readers_could_take_differently_is_unreadable(body: bytes, cause: str) -> None:
    assert read_json(body) == Unreadable(cause=cause)


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 200_000])
def test_nesting_beyond_every_measure_is_unreadable(body: bytes) -> None:
    assert isinstance(read_json(body), Unreadable)


def test_fractions_keep_their_digits_and_a_byte_order_mark_is_passed_over() -> None:
    assert read_json(b'\xef\xbb\xbf{"a":0.10}') == {"a": Decimal("0.10")}


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(body: bytes) -> None:
    read_json(body)


def test_a_path_through_anything_ends_in_a_value_or_in_nothing() -> None:
    assert at({"error": {"job_id": "a"}}, ("error", "job_id")) == "a"
    nothing: tuple[object, ...] = (None, [], "error", 7, {"error": "job_id"}, {"error": []}, {"error": None})
    for value in nothing:
        assert at(value, ("error", "job_id")) is None


@pytest.mark.parametrize("good", ["a", "x" * 512, "../?#", "ünïcode 😀", "17"])
def test_an_id_that_can_be_saved_and_shown_is_usable(good: str) -> None:
    assert usable_id(good) == good


@pytest.mark.parametrize(
    "bad", ["", "x" * 513, "a\x00", "a\n", "\x7f", "\x9f", "\ud800", None, 17, True, ["a"], {"a": "a"}]
)
def test_an_id_that_cannot_be_saved_or_shown_is_not_usable(bad: object) -> None:
    assert usable_id(bad) is None


@given(st.text(max_size=40), st.integers(min_value=0, max_value=40))
def test_plain_text_is_unchanged_or_refused(text: str, limit: int) -> None:
    assert plain_text(text, limit) in {None, text}
    assert plain_text(text, limit) is None or 0 < len(text) <= limit
