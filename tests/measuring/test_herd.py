"""What the return of a service is judged by: its own count of looks, in the busiest second wherever that begins."""

import pytest

from coatcheck.bench.herd import Return, since


@pytest.mark.parametrize(
    ("tenths", "busiest"),
    [
        ([], 0),
        ([3], 3),
        ([1] * 10, 10),
        ([1] * 30, 10),
        ([0] * 5 + [7] * 10 + [0] * 5, 70),
        ([9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], 9),
    ],
)
def test_the_busiest_second_begins_at_any_tenth(tenths: list[int], busiest: int) -> None:
    assert Return(tenths=tenths, limit="").busiest == busiest


def test_counting_begins_after_the_return_and_ends_with_the_last_render() -> None:
    told = [(90, 50), (101, 4), (103, 5), (104, 6), (105, 7)]
    assert since(100, told, 10) == [4, 0, 5, 6]
    assert since(100, told, 9) == [4, 0, 5]


def test_the_curve_is_told_by_the_second() -> None:
    assert Return(tenths=[1] * 25, limit="").curve == "10 10 5"
    assert Return(tenths=[1] * 400, limit="").curve.endswith("10 … in all 40 s")
