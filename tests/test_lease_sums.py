"""A lease covers what it is for: the sum is made from the settings, and one that is too short is refused with it."""

from pathlib import Path

import pytest

from coatcheck.config import load_settings, sizing
from coatcheck.errors import LeaseTooShort

GENACE = "COATCHECK_PROVIDERS__GENACE__"


def test_leases_are_the_sum_of_what_they_cover(tmp_path: Path) -> None:
    two = {"COATCHECK_PROVIDERS__SLOW__TIMEOUT_S": "120", f"{GENACE}WAIT_S": "50"}
    sums = sizing.check_leases(load_settings(two, tmp_path))
    assert (sums.dispatch.provider, sums.dispatch.lease_s) == ("slow", 5 + 120 + 1 + 5 + 2)
    assert (sums.observe.provider, sums.observe.lease_s) == ("genace", 60 + 1 + 5 + 2)
    assert sums.deliver.lease_s == 3 * 10 + 1 + 5 + 2
    assert [each.role for each in sums.all] == ["dispatch", "observe", "deliver"]


def test_a_lease_that_is_long_enough_is_taken(tmp_path: Path) -> None:
    sums = sizing.check_leases(
        load_settings({"COATCHECK_LEASE__DISPATCH_S": "73", f"{GENACE}KIND": "genace"}, tmp_path)
    )
    assert (sums.dispatch.lease_s, sums.dispatch.needed_s) == (73, 73)


def test_a_lease_too_short_is_refused_with_the_sum_term_by_term(tmp_path: Path) -> None:
    found = load_settings({"COATCHECK_LEASE__DISPATCH_S": "72.9", f"{GENACE}KIND": "genace"}, tmp_path)
    with pytest.raises(LeaseTooShort) as refused:
        sizing.check_leases(found)
    assert refused.value.message == (
        "COATCHECK_LEASE__DISPATCH_S: expected at least 5 (connection, SEND_S) + 60 (the POST, TIMEOUT_S) + 1 (parsing)"
        " + 5 (persistence) + 2 (margin, MARGIN_S) = 73 s for genace, got 72.9 s"
    )
    assert "to 73 or more" in refused.value.next
    assert (refused.value.code, refused.value.exit_code) == ("lease_too_short", 2)


def test_a_worker_without_providers_still_has_leases(tmp_path: Path) -> None:
    assert all(each.lease_s > 0 for each in sizing.check_leases(load_settings({}, tmp_path)).all)
