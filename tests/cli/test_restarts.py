"""When a process that ended is started anew: later each time, no more after deaths in a row, never for a refusal, always after an outage."""

import pytest

from coatcheck.cli.restarts import ENDS, LONGEST_S, WITHIN_S, Restarts


def test_deaths_in_a_row_are_waited_for_longer_each_time_until_it_is_given_up() -> None:
    restarts = Restarts()
    assert [restarts.after(-9, float(at)) for at in range(ENDS)] == [1, 2, 4, 8, None]


def test_deaths_that_lie_apart_never_add_up() -> None:
    restarts = Restarts()
    assert {restarts.after(1, at * WITHIN_S) for at in range(3 * ENDS)} == {1}


def test_the_last_minute_counts_and_not_what_was_before_it() -> None:
    restarts = Restarts()
    for at in (0.0, 1.0, 2.0, 3.0):
        restarts.after(1, at)
    assert restarts.after(1, WITHIN_S + 1.5) == 4


def test_what_is_refused_is_refused_again() -> None:
    assert Restarts().after(2, 0.0) is None


def test_an_outage_is_waited_out_however_long_and_counts_as_no_death() -> None:
    restarts = Restarts()
    assert [restarts.after(6, float(at)) for at in range(8)] == [1, 2, 4, 8, 16, LONGEST_S, LONGEST_S, LONGEST_S]
    assert restarts.after(6, 1e6) == LONGEST_S
    assert [restarts.after(1, 1e6 + at) for at in range(ENDS)] == [1, 2, 4, 8, None]
    assert Restarts().after(6, 0.0) == 1


@pytest.mark.parametrize("code", [0, 130])
def test_who_was_told_to_end_by_somebody_else_is_replaced_soon_and_for_ever_if_it_is_now_and_then(code: int) -> None:
    restarts = Restarts()
    assert {restarts.after(code, at * WITHIN_S / 3) for at in range(30)} <= {1, 2, 4}


@pytest.mark.parametrize("code", [0, 130])
def test_who_ends_well_again_and_again_is_given_up_as_who_dies(code: int) -> None:
    restarts = Restarts()
    assert [restarts.after(code, float(at)) for at in range(ENDS)] == [1, 2, 4, 8, None]
