"""When something happened by another's clock: one reading, or none."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from coatcheck.provider.instant import read_instant

THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05+00:00",
        "2026-01-02t05:04:05+02:00",
        "2026-01-02 02:34:05-0030",
        "2026-01-02T03:04:05.000000000Z",
        1767323045,
        1767323045000,
        Decimal("1767323045.0"),
        Decimal(1767323045000),
    ],
)
def test_text_with_an_offset_and_seconds_and_milliseconds_are_read(value: object) -> None:
    assert read_instant(value) == THEN


def test_fractions_are_kept_to_the_microsecond() -> None:
    half = THEN.replace(microsecond=500_000)
    values = ["2026-01-02T03:04:05.5Z", Decimal("1767323045.5"), 1767323045500, "2026-01-02T03:04:05.5000009Z"]
    assert {read_instant(value) for value in values} == {half}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "soon",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "20260102T030405Z",
        "2026-W01-5T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T25:04:05Z",
        "2026-01-02T03:04:05+99:00",
        "1999-12-31T23:59:59Z",
        "2100-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "1767323045",
        "٢٠٢٦-01-02T03:04:05Z",
        0,
        -1,
        5,
        10**30,
        Decimal("1E+400"),
        1.5,
        [1767323045],
        {"seconds": 1767323045},
    ],
)
def test_anything_else_counts_as_not_told(value: object) -> None:
    assert read_instant(value) is None
