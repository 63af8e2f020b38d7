"""Retry-After in both its forms, and every wrong one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.retry_after import retry_after_s

NOW = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("301", 300.0),
        ("999999999999999999", 300.0),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30.0),
        ("Sunday, 06-Nov-94 08:50:07 GMT", 30.0),
        ("Sun Nov  6 08:50:07 1994", 30.0),
        ("Sun, 06 Nov 1994 08:49:36 GMT", 0.0),
        ("Wed, 01 Jan 2031 00:00:00 GMT", 300.0),
    ],
)
def test_a_delay_is_read_and_clamped(value: str, seconds: float) -> None:
    assert retry_after_s(value, now=NOW, cap_s=300) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "-1",
        "soon",
        "1e3",
        "NaN",
        "inf",
        "12s",
        "٣",
        "9" * 400,
        "Sun, 31 Feb 1994 08:50:07 GMT",
        "Sun, 06 Foo 1994 08:50:07 GMT",
        "Sun, 06 Nov 1994 25:50:07 GMT",
        "Sun, 06 Nov 1994 08:50:07 CET",
        "Sun, 06 Nov 0000 08:50:07 GMT",
    ],
)
def test_a_wrong_delay_is_no_delay(value: str | None) -> None:
    assert retry_after_s(value, now=NOW, cap_s=300) is None


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF)), st.floats(min_value=0, max_value=1e6))
def test_any_text_is_harmless(value: str, cap_s: float) -> None:
    seconds = retry_after_s(value, now=NOW, cap_s=cap_s)
    assert seconds is None or 0 <= seconds <= cap_s
